// Repeated rows of small tables, each worked out by hand.
#include <catch2/catch.hpp>

#include "io/tables/bank_check.hpp"
#include "tests/io/equal_rows.hpp"
#include "tests/io/tables/small_bank.hpp"

using namespace weft;
using namespace weft::test;

TEST_CASE("rows of a table are equal in all but y, up to white space, or but for duration",
          "[bank_check]") {
  const TemporaryFolder folder;
  write_all(folder / "small.csv", bank_text({{.age = "30"},
                                             {.age = "30", .y = "yes"},
                                             {.age = "31", .duration = "10"},
                                             {.age = "31", .duration = "20"},
                                             {.job = " self  employed\t", .y = "yes"},
                                             {.job = "self employed", .y = "yes"},
                                             {.age = "50"},
                                             {.age = "50"},
                                             {.age = "51", .job = "selfemployed"}}));
  const Bank data(folder / "small.csv");
  const RowCheck found = check(data, {.train = {0, 2, 4, 6}, .validation = {1, 3}, .test = {5}});
  CHECK(found.class_counts[0] == Rows{3, 1});
  CHECK(found.class_counts[1] == Rows{1, 1});
  CHECK(found.class_counts[2] == Rows{0, 1});
  CHECK(found.class_counts[3] == Rows{2, 0});
  CHECK(rows_of(found.exact) == std::vector<Rows>{{0, 1}, {6, 7}});
  CHECK(rows_of(found.but_space) == std::vector<Rows>{{0, 1}, {4, 5}, {6, 7}});
  CHECK(rows_of(found.in_some) == std::vector<Rows>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  // 6 and 7 are no leak: nothing is made of 7.
  CHECK(found.exact.num_spanning() == 1);
  CHECK(found.in_some.num_spanning() == 3);
  CHECK(found.num_leaks() == 2);
  CHECK(found.but_space.num_rows() == 6);
  CHECK(found.in_some.num_rows(DataPart::train) == 3);
  CHECK(found.in_some.num_rows(DataPart::validation) == 2);
  CHECK(found.in_some.num_rows(DataPart::test) == 1);
  for (const EqualRowGroups* all : {&found.exact, &found.but_space, &found.in_some}) {
    CHECK(all->num_contradicting() == 1);
    CHECK(all->groups[0].labels_differ());
    CHECK(all->groups[0].places[1].label == 1);
    CHECK(all->groups[0].places[1].part == DataPart::validation);
  }
}

TEST_CASE("what is equal does not depend on where columns stand", "[bank_check]") {
  const TemporaryFolder folder;
  // y first and duration second; a field ends where it ends: 1|23 is not 12|3.
  const auto text = [](const std::vector<FullRow>& rows) {
    const auto turned = [](std::vector<std::string> fields) {
      std::rotate(fields.begin(), fields.end() - 1, fields.end());
      std::rotate(fields.begin() + 1, fields.begin() + 12, fields.begin() + 13);
      return bank_line(fields);
    };
    std::string all = turned(full_header);
    for (const FullRow& row : rows) all += turned(row.fields());
    return all;
  };
  write_all(folder / "turned.csv", text({{.job = "b", .duration = "1", .marital = "cd"},
                                         {.job = "bc", .duration = "1", .marital = "d"},
                                         {.job = "b", .y = "yes", .marital = "cd"}}));
  const Bank data(folder / "turned.csv");
  REQUIRE(data.table().column_names()[1] == "duration");
  const RowCheck found = check(data, {.train = {0, 1}, .validation = {}, .test = {2}});
  CHECK(found.but_space.groups.empty());
  CHECK(rows_of(found.in_some) == std::vector<Rows>{{0, 2}});
  CHECK(found.in_some.num_contradicting() == 1);
  CHECK(found.num_leaks() == 0);
}
