// What a model is worth on slices of the judged samples (io/sample_slices): the same figures as of
// all of them, from the predictions that fall into each slice.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "io/sample_slices.hpp"
#include "layers/cross_entropy.hpp"

namespace weft {

// Of one slice. What is 0/0 is not defined, and so is everything of a slice without samples.
struct SliceFigures {
  std::string name;
  index_t samples = 0;
  index_t labels = 0;               // of its samples: one each, or one for each token
  std::optional<double> loss = {};  // mean over labels, added in the order of samples
  std::optional<double> accuracy = {}, macro_f1 = {};
  // Of two classes: areas, and the decision at the threshold.
  std::optional<double> roc_auc = {}, pr_auc = {};
  std::optional<double> precision = {}, recall = {}, f1 = {};
};

struct SliceReport {
  std::string by;  // as SampleSlices has it
  std::vector<SliceFigures> slices;
};

// `predictions`: of all judged samples in their order, as many of each sample
// (Trainer::evaluate()). `threshold`: chosen on validation.
SliceReport judge_slices(const SampleSlices& slices, const std::vector<Prediction>& predictions,
                         index_t num_classes, const std::optional<double>& threshold);

}  // namespace weft
