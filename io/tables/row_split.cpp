// The three ways to cut; see the header.
#include "io/tables/row_split.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "io/random_order.hpp"

namespace weft {

namespace {

// Of Stream::split: round 0 orders rows (as make_split does), round 1 groups.
constexpr index_t round_of_rows = 0;
constexpr index_t round_of_groups = 1;

void check_counts(index_t num_rows, const RowCounts& counts) {
  const auto [train, validation, test] = counts;
  require(
      train >= 1 && validation >= 0 && test >= 0, ExitCode::usage,
      fmt::format("the split asks for train = {}, validation = {}, test = {}: expected train >= "
                  "1 and the others >= 0",
                  train, validation, test));
  require(
      train <= num_rows && validation <= num_rows - train && test <= num_rows - train - validation,
      ExitCode::usage,
      fmt::format("the split asks for train = {}, validation = {}, test = {}, but there are {} "
                  "rows: their sum may be at most that",
                  train, validation, test, num_rows));
}

std::vector<index_t> sorted_piece(const std::vector<index_t>& list, index_t begin, index_t count) {
  std::vector<index_t> piece(list.begin() + begin, list.begin() + begin + count);
  std::sort(piece.begin(), piece.end());
  return piece;
}

}  // namespace

Split split_by_time(index_t num_rows, const RowCounts& counts) {
  check_counts(num_rows, counts);
  const std::vector<index_t> rows = all_of({0, num_rows});
  const auto [train, validation, test] = counts;
  return {.train = sorted_piece(rows, 0, train),
          .validation = sorted_piece(rows, train, validation),
          .test = sorted_piece(rows, train + validation, test)};
}

Split split_at_random(index_t num_rows, const RowCounts& counts, std::uint64_t seed) {
  check_counts(num_rows, counts);
  const std::vector<index_t> order =
      random_order(all_of({0, num_rows}), seed, Stream::split, round_of_rows);
  const auto [train, validation, test] = counts;
  return {.seed = seed,
          .train = sorted_piece(order, validation, train),
          .validation = sorted_piece(order, 0, validation),
          .test = sorted_piece(order, num_rows - test, test)};
}

Split split_by_group(std::span<const index_t> groups, const RowCounts& counts, std::uint64_t seed) {
  check_counts(std::ssize(groups), counts);
  for (std::size_t row = 0; row < groups.size(); ++row) {
    if (groups[row] < 0) [[unlikely]] {
      throw Error(ExitCode::usage,
                  fmt::format("row {} has group {}: expected 0 or more", row, groups[row]));
    }
  }
  std::vector<index_t> distinct(groups.begin(), groups.end());
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  const auto place = [&](index_t group) {
    return static_cast<std::size_t>(std::lower_bound(distinct.begin(), distinct.end(), group) -
                                    distinct.begin());
  };
  std::vector<std::vector<index_t>> members(distinct.size());
  for (std::size_t row = 0; row < groups.size(); ++row)
    members[place(groups[row])].push_back(static_cast<index_t>(row));

  Split split;
  split.seed = seed;
  struct Part {
    std::vector<index_t>* rows;
    index_t count;
  };
  const std::vector<Part> parts = {{&split.validation, counts.validation},
                                   {&split.test, counts.test},
                                   {&split.train, counts.train}};
  std::size_t part = 0;
  for (const index_t group : random_order(distinct, seed, Stream::split, round_of_groups)) {
    while (part < parts.size() && std::ssize(*parts[part].rows) >= parts[part].count) ++part;
    if (part == parts.size()) break;
    const std::vector<index_t>& rows = members[place(group)];
    parts[part].rows->insert(parts[part].rows->end(), rows.begin(), rows.end());
  }
  for (const Part& one : parts) std::sort(one.rows->begin(), one.rows->end());
  require(
      std::ssize(split.train) >= counts.train, ExitCode::usage,
      fmt::format("the split by group asks for train = {}, validation = {}, test = {}, but with "
                  "its {} groups whole only {} of {} rows are left for training: ask for fewer "
                  "rows",
                  counts.train, counts.validation, counts.test, distinct.size(), split.train.size(),
                  groups.size()));
  return split;
}

}  // namespace weft
