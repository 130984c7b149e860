// Counts, weights, repetitions; see the header.
#include "io/tables/class_balance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "io/random_order.hpp"

namespace weft {

namespace {

// Of Stream::split; 0 and 1 are row_split's.
constexpr index_t round_of_repetitions = 2;

int label_of(std::span<const int> labels, index_t row) {
  return labels[static_cast<std::size_t>(row)];
}

void require_all_classes(const std::vector<index_t>& count, const char* what) {
  for (std::size_t c = 0; c < count.size(); ++c) {
    require(count[c] > 0, ExitCode::usage,
            fmt::format("{}: none of the training rows has class {}; split so that each class is "
                        "among them, or leave this off",
                        what, c));
  }
}

}  // namespace

std::vector<index_t> count_classes(std::span<const int> labels, std::span<const index_t> rows,
                                   index_t num_classes) {
  std::vector<index_t> count(static_cast<std::size_t>(num_classes), 0);
  for (const index_t row : rows) {
    if (row < 0 || row >= std::ssize(labels)) [[unlikely]] {
      throw Error(ExitCode::usage, fmt::format("row {}: there are labels of rows 0..{}", row,
                                               std::ssize(labels) - 1));
    }
    const int label = label_of(labels, row);
    if (label < 0 || label >= num_classes) [[unlikely]] {
      throw Error(ExitCode::usage,
                  fmt::format("row {} has label {}: expected 0..{}", row, label, num_classes - 1));
    }
    ++count[static_cast<std::size_t>(label)];
  }
  return count;
}

std::vector<double> class_weights(std::span<const int> labels, std::span<const index_t> rows,
                                  index_t num_classes) {
  const std::vector<index_t> count = count_classes(labels, rows, num_classes);
  require_all_classes(count, "class weights");
  std::vector<double> weights;
  for (const index_t n : count)
    weights.push_back(static_cast<double>(rows.size()) / static_cast<double>(num_classes * n));
  return weights;
}

std::vector<index_t> oversample(std::span<const int> labels, std::span<const index_t> rows,
                                index_t num_classes, double ratio, std::uint64_t seed) {
  require(std::isfinite(ratio) && ratio >= 1, ExitCode::usage,
          fmt::format("oversampling to 1 : {}: expected a ratio of at least 1", ratio));
  const std::vector<index_t> count = count_classes(labels, rows, num_classes);
  require_all_classes(count, "oversampling");
  const auto largest = static_cast<double>(*std::max_element(count.begin(), count.end()));
  const auto least = static_cast<index_t>(std::ceil(largest / ratio));
  std::vector<index_t> list(rows.begin(), rows.end());
  for (int c = 0; c < num_classes; ++c) {
    const index_t missing = least - count[static_cast<std::size_t>(c)];
    if (missing <= 0) continue;
    std::vector<index_t> members;
    for (const index_t row : rows) {
      if (label_of(labels, row) == c) members.push_back(row);
    }
    const index_t whole = missing / std::ssize(members), rest = missing % std::ssize(members);
    for (index_t i = 0; i < whole; ++i) list.insert(list.end(), members.begin(), members.end());
    const std::vector<index_t> order =
        random_order(members, seed, Stream::split, round_of_repetitions);
    list.insert(list.end(), order.begin(), order.begin() + rest);
  }
  return list;
}

}  // namespace weft
