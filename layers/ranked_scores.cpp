#include "layers/ranked_scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"

namespace weft {

namespace {

// Twice the pairs of the ROC curve, and F1 against F1, are then below 2^63.
constexpr std::size_t max_samples = std::numeric_limits<std::int32_t>::max();

bool has_larger_f1(const DecisionCounts& a, const DecisionCounts& b) {
  const auto all = [](const DecisionCounts& c) {
    return 2 * c.true_positives + c.false_positives + c.false_negatives;
  };
  return a.true_positives * all(b) > b.true_positives * all(a);
}

}  // namespace

RankedScores::RankedScores(const std::vector<ScoredSample>& samples) {
  require(samples.size() <= max_samples, ExitCode::failed,
          fmt::format("ranked scores: expected at most {} samples, found {}", max_samples,
                      samples.size()));
  std::vector<ScoredSample> sorted;
  sorted.reserve(samples.size());
  for (const ScoredSample& sample : samples) {
    ++(sample.is_positive ? num_positives_ : num_negatives_);
    // + 0.0: the two zeros are equal, so which of them a threshold is must not depend on the sort.
    if (!std::isnan(sample.score)) sorted.push_back({sample.score + 0.0, sample.is_positive});
  }
  is_ordered_ = sorted.size() == samples.size();
  std::sort(sorted.begin(), sorted.end(),
            [](const ScoredSample& a, const ScoredSample& b) { return a.score > b.score; });
  Point point{0.0, 0, 0};
  for (const ScoredSample& sample : sorted) {
    if (points_.empty() || points_.back().score != sample.score) points_.push_back(point);
    point.score = sample.score;
    ++(sample.is_positive ? point.positives : point.negatives);
    points_.back() = point;
  }
}

std::optional<double> RankedScores::roc_auc() const {
  if (!is_ordered_) return std::nullopt;
  std::int64_t twice_won = 0;
  Point above{0.0, 0, 0};
  for (const Point& point : points_) {
    twice_won += (point.negatives - above.negatives) * (above.positives + point.positives);
    above = point;
  }
  return ratio_of(twice_won, 2 * num_positives_ * num_negatives_);
}

std::optional<double> RankedScores::average_precision() const {
  if (!is_ordered_ || num_positives_ == 0) return std::nullopt;
  double sum = 0.0;
  std::int64_t above = 0;
  for (const Point& point : points_) {
    sum += static_cast<double>(point.positives - above) * *counts_of(point).precision();
    above = point.positives;
  }
  return sum / static_cast<double>(num_positives_);
}

std::optional<double> RankedScores::best_f1_threshold() const {
  if (!is_ordered_ || num_positives_ == 0) return std::nullopt;
  const Point* best = &points_.front();
  for (const Point& point : points_) {
    if (has_larger_f1(counts_of(point), counts_of(*best))) best = &point;
  }
  return best->score;
}

DecisionCounts RankedScores::at(double threshold) const {
  const auto below = std::find_if(points_.begin(), points_.end(),
                                  [&](const Point& point) { return !(point.score >= threshold); });
  return counts_of(below == points_.begin() ? Point{0.0, 0, 0} : *(below - 1));
}

}  // namespace weft
