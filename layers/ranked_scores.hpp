// Samples of two classes in the order of their scores: areas under the ROC and the
// precision-recall curve, and the threshold. Both areas need the global order; ranks' areas cannot
// be averaged.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "layers/decision_counts.hpp"

namespace weft {

struct ScoredSample {
  double score;  // larger: rather positive
  bool is_positive;
};

class RankedScores {
 public:
  // In any order: samples of equal score are one point of both curves. Fewer than 2^31, else
  // Error(failed). Where a score is not a number there is no order: all but at() is undefined.
  explicit RankedScores(const std::vector<ScoredSample>& samples);

  std::int64_t num_positives() const { return num_positives_; }
  std::int64_t num_negatives() const { return num_negatives_; }

  // The share of pairs (positive, negative) in which the positive has the larger score; equal
  // scores are half a pair. Counted in integers. Undefined unless there are both.
  std::optional<double> roc_auc() const;
  // PR AUC as average precision: the sum over distinct scores, from the largest, of precision x
  // gain in recall, without interpolation. Undefined without positives (scikit-learn warns and
  // gives 0).
  std::optional<double> average_precision() const;
  // The score t for which "positive where score >= t" has the largest F1, compared in integers; of
  // several the largest, which decides positive least often. To be asked of validation alone.
  // Undefined without positives.
  std::optional<double> best_f1_threshold() const;
  // Of the decision "positive where score >= threshold"; a score that is not a number is not.
  DecisionCounts at(double threshold) const;

 private:
  // All samples whose score is at least this one.
  struct Point {
    double score;
    std::int64_t positives;
    std::int64_t negatives;
  };
  DecisionCounts counts_of(const Point& point) const {
    return {.true_positives = point.positives,
            .false_positives = point.negatives,
            .false_negatives = num_positives_ - point.positives};
  }

  std::vector<Point> points_;  // one for each distinct score, falling
  std::int64_t num_positives_ = 0;
  std::int64_t num_negatives_ = 0;
  bool is_ordered_ = true;
};

}  // namespace weft
