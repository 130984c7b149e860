// An evaluation as JSON and as text, for all commands. What is undefined (0/0) is null and
// "undefined": no number.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/evaluation.hpp"

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

}  // namespace weft
