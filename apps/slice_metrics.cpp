#include "apps/slice_metrics.hpp"

#include <cassert>

#include "layers/confusion_matrix.hpp"
#include "layers/ranked_scores.hpp"

namespace weft {

namespace {

void rank(const std::vector<const Prediction*>& mine, const std::optional<double>& threshold,
          SliceFigures& figures) {
  std::vector<ScoredSample> scored;
  for (const Prediction* one : mine) scored.push_back({one->score, one->label == 1});
  const RankedScores ranking(scored);
  figures.roc_auc = ranking.roc_auc();
  figures.pr_auc = ranking.average_precision();
  if (!threshold) return;
  const DecisionCounts decision = ranking.at(*threshold);
  figures.precision = decision.precision();
  figures.recall = decision.recall();
  figures.f1 = decision.f1();
}

}  // namespace

SliceReport judge_slices(const SampleSlices& slices, const std::vector<Prediction>& predictions,
                         index_t num_classes, const std::optional<double>& threshold) {
  const std::size_t num_samples = slices.slice_of.size();
  const std::size_t labels = num_samples == 0 ? 1 : predictions.size() / num_samples;
  assert(predictions.size() == num_samples * labels);
  std::vector<std::vector<const Prediction*>> of_slice(slices.names.size());
  for (std::size_t i = 0; i < predictions.size(); ++i)
    of_slice[static_cast<std::size_t>(slices.slice_of[i / labels])].push_back(&predictions[i]);

  SliceReport report{slices.by, {}};
  for (std::size_t s = 0; s < of_slice.size(); ++s) {
    const std::vector<const Prediction*>& mine = of_slice[s];
    SliceFigures figures{.name = slices.names[s],
                         .samples = std::ssize(mine) / static_cast<index_t>(labels),
                         .labels = std::ssize(mine)};
    ConfusionMatrix confusion(num_classes);
    double loss = 0.0;
    for (const Prediction* one : mine) {
      confusion.add(one->label, one->predicted);
      loss += one->loss;
    }
    if (!mine.empty()) figures.loss = loss / static_cast<double>(mine.size());
    figures.accuracy = confusion.accuracy();
    figures.macro_f1 = confusion.macro_f1();
    if (num_classes == 2) rank(mine, threshold, figures);
    report.slices.push_back(std::move(figures));
  }
  return report;
}

}  // namespace weft
