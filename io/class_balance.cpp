// Counts and weights; see the header.
#include "io/class_balance.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace weft {

namespace {

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

}  // namespace weft
