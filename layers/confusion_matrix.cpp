#include "layers/confusion_matrix.hpp"

#include <fmt/format.h>

#include <cassert>
#include <numeric>
#include <utility>

#include "core/error.hpp"

namespace weft {

namespace {

template <typename ValueOfClass>
std::optional<double> macro_mean(index_t num_classes, const ValueOfClass& value_of_class) {
  double sum = 0.0;
  std::int64_t num_defined = 0;
  for (index_t c = 0; c < num_classes; ++c) {
    const std::optional<double> value = value_of_class(c);
    if (!value) continue;
    sum += *value;
    ++num_defined;
  }
  if (num_defined == 0) return std::nullopt;
  return sum / static_cast<double>(num_defined);
}

}  // namespace

ConfusionMatrix::ConfusionMatrix(index_t num_classes)
    : num_classes_(num_classes), counts_(static_cast<std::size_t>(num_classes * num_classes)) {}

ConfusionMatrix::ConfusionMatrix(index_t num_classes, std::vector<std::int64_t> counts)
    : num_classes_(num_classes), counts_(std::move(counts)) {
  assert(static_cast<index_t>(counts_.size()) == num_classes * num_classes);
}

void ConfusionMatrix::add(index_t label, index_t predicted) {
  const Range classes{0, num_classes_};
  require(classes.contains(label) && classes.contains(predicted), ExitCode::failed,
          fmt::format("confusion matrix: expected classes 0 to {}, found label {}, predicted {}",
                      num_classes_ - 1, label, predicted));
  ++counts_[static_cast<std::size_t>(label * num_classes_ + predicted)];
}

ConfusionMatrix& ConfusionMatrix::operator+=(const ConfusionMatrix& other) {
  assert(other.num_classes_ == num_classes_);
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  return *this;
}

std::int64_t ConfusionMatrix::num_samples() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

std::int64_t ConfusionMatrix::support(index_t label) const {
  std::int64_t sum = 0;
  for (index_t predicted = 0; predicted < num_classes_; ++predicted) sum += count(label, predicted);
  return sum;
}

DecisionCounts ConfusionMatrix::of_class(index_t which) const {
  const std::int64_t correct = count(which, which);
  std::int64_t decided = 0;
  for (index_t label = 0; label < num_classes_; ++label) decided += count(label, which);
  return {.true_positives = correct,
          .false_positives = decided - correct,
          .false_negatives = support(which) - correct};
}

std::optional<double> ConfusionMatrix::accuracy() const {
  std::int64_t correct = 0;
  for (index_t c = 0; c < num_classes_; ++c) correct += count(c, c);
  return ratio_of(correct, num_samples());
}

std::optional<double> ConfusionMatrix::macro_precision() const {
  return macro_mean(num_classes_, [&](index_t c) { return of_class(c).precision(); });
}

std::optional<double> ConfusionMatrix::macro_recall() const {
  return macro_mean(num_classes_, [&](index_t c) { return of_class(c).recall(); });
}

std::optional<double> ConfusionMatrix::macro_f1() const {
  return macro_mean(num_classes_, [&](index_t c) { return of_class(c).f1(); });
}

}  // namespace weft
