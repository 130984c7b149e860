// How often a yes-or-no decision was right and wrong, and the ratios made of that. Integers until
// the last division, so the ratios have the same bits whoever counted what.
#pragma once

#include <cstdint>
#include <optional>

namespace weft {

// none where the denominator is 0: undefined, which is neither 0 nor 1.
inline std::optional<double> ratio_of(std::int64_t numerator, std::int64_t denominator) {
  if (denominator == 0) return std::nullopt;
  return static_cast<double>(numerator) / static_cast<double>(denominator);
}

struct DecisionCounts {
  std::int64_t true_positives = 0;
  std::int64_t false_positives = 0;
  std::int64_t false_negatives = 0;

  // Undefined where nothing was decided to be positive.
  std::optional<double> precision() const {
    return ratio_of(true_positives, true_positives + false_positives);
  }
  // Undefined where nothing is positive.
  std::optional<double> recall() const {
    return ratio_of(true_positives, true_positives + false_negatives);
  }
  // 2 TP / (2 TP + FP + FN), the harmonic mean of the two where both are defined. Undefined where
  // nothing is positive and nothing was decided to be.
  std::optional<double> f1() const {
    return ratio_of(2 * true_positives, 2 * true_positives + false_positives + false_negatives);
  }

  friend bool operator==(const DecisionCounts&, const DecisionCounts&) = default;
};

}  // namespace weft
