// An evaluation as JSON and as text, for all commands. What is undefined (0/0) is null and
// "undefined": no number.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/evaluation.hpp"
#include "apps/slice_metrics.hpp"

namespace weft {

std::string_view name_of(EvalSplit split);

// "0.4310", or "undefined".
std::string text_of(const std::optional<double>& value);

// {"loss", "accuracy", "macro_precision", "macro_recall", "macro_f1", "per_class": [{"class",
// "precision", "recall", "f1", "support"}], "confusion": row = label}; of two classes also
// "threshold" and at it "precision", "recall", "f1"; "roc_auc", "pr_auc". `threshold`: chosen on
// validation.
nlohmann::ordered_json metrics_json(const Evaluation& evaluation,
                                    const std::vector<std::string>& class_names,
                                    const std::optional<double>& threshold);

// The same for people, a line a class.
std::string metrics_text(const Evaluation& evaluation, const std::vector<std::string>& class_names,
                         const std::optional<double>& threshold);

// [{"by", "slices": [{"slice", "samples", "loss", "accuracy", "macro_f1"}]}]; of two classes also
// "precision", "recall", "f1" at the threshold, "roc_auc", "pr_auc"; of more classes than a table
// shows "tokens" and "bits_per_token".
nlohmann::ordered_json slices_json(const std::vector<SliceReport>& reports, index_t num_classes);

// The same for people, a table each, a line a slice.
std::string slices_text(const std::vector<SliceReport>& reports, index_t num_classes);

}  // namespace weft
