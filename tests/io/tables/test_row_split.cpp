// Splits and class balance: worked out by hand, and properties over drawn tables.
#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "io/class_balance.hpp"
#include "io/split.hpp"
#include "io/tables/row_split.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

using Rows = std::vector<index_t>;

void check_parts(const Split& split, index_t num_rows) {
  std::set<index_t> seen;
  for (const Rows* part : {&split.train, &split.validation, &split.test}) {
    CHECK(std::is_sorted(part->begin(), part->end()));
    for (const index_t row : *part) {
      CHECK((0 <= row && row < num_rows));
      CHECK(seen.insert(row).second);
    }
  }
}

}  // namespace

TEST_CASE("by time: rows in their order, nothing shuffled", "[row_split]") {
  const Split split = split_by_time(10, {.train = 5, .validation = 2, .test = 2});
  CHECK(split.train == Rows{0, 1, 2, 3, 4});
  CHECK(split.validation == Rows{5, 6});
  CHECK(split.test == Rows{7, 8});
  CHECK(split_by_time(3, {.train = 3}).test.empty());
}

TEST_CASE("at random: make_split's rows, and a test part of its own", "[row_split]") {
  for (const std::uint64_t seed : {1, 2, 77}) {
    const Split known = make_split(1000, 700, 100, seed);
    const Split same = split_at_random(1000, {.train = 700, .validation = 100}, seed);
    CHECK(same.train == known.train);
    CHECK(same.validation == known.validation);
    const Split split = split_at_random(1000, {.train = 700, .validation = 100, .test = 150}, seed);
    check_parts(split, 1000);
    CHECK(split.train == known.train);
    CHECK(split.test.size() == 150);
    // Another number to train or validate with changes nothing of what is judged by.
    CHECK(split_at_random(1000, {.train = 10, .validation = 7, .test = 150}, seed).test ==
          split.test);
    CHECK(split_at_random(1000, {.train = 10, .validation = 100, .test = 9}, seed).validation ==
          split.validation);
  }
  CHECK(split_at_random(1000, {.train = 500}, 1).train !=
        split_at_random(1000, {.train = 500}, 2).train);
}

TEST_CASE("by group: no group is in two parts", "[row_split]") {
  std::mt19937 generator(5);
  std::set<Rows> different;
  for (int round = 0; round < 200; ++round) {
    INFO("round " << round);
    Rows groups(50 + generator() % 200);
    const index_t num_groups = 10 + generator() % 30;
    for (index_t& group : groups) group = (generator() % num_groups) * 1000003;
    const auto n = static_cast<index_t>(groups.size());
    const RowCounts counts{.train = n / 4, .validation = n / 10, .test = n / 10};
    const Split split = split_by_group(groups, counts, static_cast<std::uint64_t>(round % 3));
    check_parts(split, n);
    std::map<index_t, index_t> size;
    for (const index_t group : groups) ++size[group];
    const index_t largest = std::max_element(size.begin(), size.end(), [](auto a, auto b) {
                              return a.second < b.second;
                            })->second;
    std::map<index_t, int> part_of_group;
    int number = 0;
    for (const auto& [part, count] : {std::pair{&split.train, counts.train},
                                      {&split.validation, counts.validation},
                                      {&split.test, counts.test}}) {
      CHECK(std::ssize(*part) >= count);
      CHECK(std::ssize(*part) < count + largest);
      std::map<index_t, index_t> taken;
      for (const index_t row : *part) ++taken[groups[static_cast<std::size_t>(row)]];
      for (const auto& [group, rows] : taken) {
        CHECK(rows == size[group]);
        CHECK(part_of_group.try_emplace(group, number).first->second == number);
      }
      ++number;
    }
    different.insert(split.test);
  }
  CHECK(different.size() > 150);

  // The seed alone decides; groups of one row each, and a part that is not asked for.
  Rows each(100);
  std::iota(each.begin(), each.end(), index_t{0});
  const Split one = split_by_group(each, {.train = 60, .validation = 20}, 7);
  CHECK(one.train.size() == 60);
  CHECK(one.validation.size() == 20);
  CHECK(one.test.empty());
  CHECK(split_by_group(each, {.train = 60, .validation = 20}, 7).train == one.train);
  CHECK(split_by_group(each, {.train = 60, .validation = 20}, 8).train != one.train);
}

TEST_CASE("splits that cannot be made", "[row_split]") {
  const Rows two_groups = {0, 0, 0, 1, 1, 1};
  // The sum would fit; whole groups do not.
  const auto error =
      error_of([&] { split_by_group(two_groups, {.train = 4, .validation = 1}, 1); });
  REQUIRE(error);
  CHECK(error->code() == ExitCode::usage);
  CHECK(says(error, "with its 2 groups whole only 3 of 6 rows are left"));
  CHECK(says(error_of([] { split_by_group(Rows{0, -1}, {.train = 1}, 1); }), "row 1 has group -1"));
  for (const RowCounts& counts :
       {RowCounts{0, 1, 1}, RowCounts{5, 3, 3}, RowCounts{11, 0, 0}, RowCounts{1, -1, 0},
        RowCounts{1, 0, -1}, RowCounts{INT64_MAX, INT64_MAX, INT64_MAX}}) {
    for (const auto& failed : {error_of([&] { split_by_time(10, counts); }),
                               error_of([&] { split_at_random(10, counts, 1); }),
                               error_of([&] { split_by_group(Rows(10, 0), counts, 1); })}) {
      REQUIRE(failed);
      CHECK(failed->code() == ExitCode::usage);
    }
  }
}

TEST_CASE("the record tells one split from another", "[row_split]") {
  const std::string record =
      split_record(split_by_time(20, {.train = 10, .validation = 5, .test = 2}));
  CHECK(record.find("\"seed\":0,\"train\":10") != std::string::npos);
  CHECK(record.find("\"validation_first\":[10,11,12,13,14]") != std::string::npos);
  CHECK(record != split_record(split_by_time(20, {.train = 10, .validation = 5, .test = 3})));
  CHECK(split_record(split_at_random(20, {.train = 10}, 4)).find("\"seed\":4,") !=
        std::string::npos);
  CHECK(split_by_group(Rows(20, 1), {.train = 10}, 5).seed == 5);
}

TEST_CASE("class weights are n / (classes x n of the class)", "[class_balance]") {
  const std::vector<int> labels = {0, 1, 0, 0, 2, 0, 1, 0};
  // Rows 0..6 without 3: labels 0 1 0 2 0 1, so n = 6 and n_c = 3, 2, 1.
  const Rows rows = {0, 1, 2, 4, 5, 6};
  CHECK(count_classes(labels, rows, 3) == Rows{3, 2, 1});
  CHECK(class_weights(labels, rows, 3) == std::vector<double>{6.0 / 9, 1.0, 2.0});
  CHECK(says(error_of([&] { class_weights(labels, rows, 4); }),
             "none of the training rows has class 3"));
  CHECK(
      says(error_of([&] { class_weights(labels, rows, 2); }), "row 4 has label 2: expected 0..1"));
  CHECK(says(error_of([&] { count_classes(labels, Rows{8}, 3); }), "rows 0..7"));
}
