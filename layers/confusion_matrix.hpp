// How often samples of each class were taken for each class, and accuracy, precision, recall and F1
// out of that. Counts are integers and add up over ranks in any order; ratios are made from the
// sum, never from ranks' ratios.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/range.hpp"
#include "layers/decision_counts.hpp"

namespace weft {

class ConfusionMatrix {
 public:
  ConfusionMatrix() = default;
  explicit ConfusionMatrix(index_t num_classes);
  // `counts` [num_classes, num_classes], row = label, as counts() gives them.
  ConfusionMatrix(index_t num_classes, std::vector<std::int64_t> counts);

  // One sample. Throws Error(failed) where one of the two is no class.
  void add(index_t label, index_t predicted);
  ConfusionMatrix& operator+=(const ConfusionMatrix& other);  // of as many classes

  index_t num_classes() const { return num_classes_; }
  std::int64_t count(index_t label, index_t predicted) const {
    return counts_[static_cast<std::size_t>(label * num_classes_ + predicted)];
  }
  const std::vector<std::int64_t>& counts() const { return counts_; }
  std::int64_t num_samples() const;
  // Samples whose label is the class.
  std::int64_t support(index_t label) const;
  // The class against all others.
  DecisionCounts of_class(index_t which) const;

  // Correct / all; undefined without samples.
  std::optional<double> accuracy() const;
  // Unweighted means over the classes in which the value is defined, added in class order;
  // undefined where it is in none. So a class that is neither a label nor predicted anywhere does
  // not count, and one that is never predicted has F1 0 and no precision (scikit-learn:
  // average="macro", zero_division=nan).
  std::optional<double> macro_precision() const;
  std::optional<double> macro_recall() const;
  std::optional<double> macro_f1() const;

  friend bool operator==(const ConfusionMatrix&, const ConfusionMatrix&) = default;

 private:
  index_t num_classes_ = 0;
  std::vector<std::int64_t> counts_;
};

}  // namespace weft
