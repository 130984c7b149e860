#include "apps/metrics_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

// Of more classes than that - the bytes of a language model - nobody reads a table, and what the
// loss means is a number of bits.
constexpr index_t most_classes_shown = 64;

bool shows_classes(const ConfusionMatrix& matrix) {
  return matrix.num_classes() <= most_classes_shown;
}

double bits_of(double loss) { return loss / std::log(2.0); }

Json json_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

// Without a threshold no decision is made, so nothing is defined.
template <typename Ratio>
std::optional<double> at_threshold(const RankedScores& ranking,
                                   const std::optional<double>& threshold, Ratio ratio) {
  if (!threshold) return std::nullopt;
  return (ranking.at(*threshold).*ratio)();
}

Json binary_json(const RankedScores& ranking, const std::optional<double>& threshold) {
  const auto at = [&](auto ratio) { return json_of(at_threshold(ranking, threshold, ratio)); };
  return {
      {"threshold", json_of(threshold)},       {"precision", at(&DecisionCounts::precision)},
      {"recall", at(&DecisionCounts::recall)}, {"f1", at(&DecisionCounts::f1)},
      {"roc_auc", json_of(ranking.roc_auc())}, {"pr_auc", json_of(ranking.average_precision())}};
}

Json rows_of(const ConfusionMatrix& matrix) {
  Json rows = Json::array();
  for (index_t label = 0; label < matrix.num_classes(); ++label) {
    Json row = Json::array();
    for (index_t c = 0; c < matrix.num_classes(); ++c) row.push_back(matrix.count(label, c));
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

std::string_view name_of(EvalSplit split) {
  return split == EvalSplit::validation ? "validation" : "test";
}

std::string text_of(const std::optional<double>& value) {
  return value ? fmt::format("{:.4f}", *value) : "undefined";
}

Json metrics_json(const Evaluation& evaluation, const std::vector<std::string>& class_names,
                  const std::optional<double>& threshold) {
  const ConfusionMatrix& matrix = evaluation.confusion;
  Json classes = Json::array();
  for (index_t c = 0; shows_classes(matrix) && c < matrix.num_classes(); ++c) {
    const DecisionCounts counts = matrix.of_class(c);
    classes.push_back({{"class", class_names.at(static_cast<std::size_t>(c))},
                       {"precision", json_of(counts.precision())},
                       {"recall", json_of(counts.recall())},
                       {"f1", json_of(counts.f1())},
                       {"support", matrix.support(c)}});
  }
  Json json{{"loss", evaluation.loss},
            {"accuracy", json_of(matrix.accuracy())},
            {"macro_precision", json_of(matrix.macro_precision())},
            {"macro_recall", json_of(matrix.macro_recall())},
            {"macro_f1", json_of(matrix.macro_f1())}};
  if (evaluation.ranking) json.update(binary_json(*evaluation.ranking, threshold));
  if (!shows_classes(matrix)) {
    json["bits_per_token"] = bits_of(evaluation.loss);
    return json;
  }
  json["per_class"] = classes;
  json["confusion"] = rows_of(matrix);
  return json;
}

std::string metrics_text(const Evaluation& evaluation, const std::vector<std::string>& class_names,
                         const std::optional<double>& threshold) {
  const ConfusionMatrix& matrix = evaluation.confusion;
  if (!shows_classes(matrix))
    return fmt::format("  loss {:.4f} = {:.4f} bits a token, accuracy {}\n", evaluation.loss,
                       bits_of(evaluation.loss), text_of(matrix.accuracy()));
  std::size_t width = std::string("macro mean").size();
  for (const std::string& name : class_names) width = std::max(width, name.size());
  const auto line = [&](const std::string& name, const auto& a, const auto& b, const auto& c,
                        std::int64_t support) {
    return fmt::format("  {:<{}}  {:>9}  {:>9}  {:>9}  {:>7}\n", name, width, a, b, c, support);
  };
  std::string text = fmt::format("  {:<{}}  {:>9}  {:>9}  {:>9}  {:>7}\n", "class", width,
                                 "precision", "recall", "F1", "samples");
  for (index_t c = 0; c < matrix.num_classes(); ++c) {
    const DecisionCounts counts = matrix.of_class(c);
    text += line(class_names.at(static_cast<std::size_t>(c)), text_of(counts.precision()),
                 text_of(counts.recall()), text_of(counts.f1()), matrix.support(c));
  }
  text += line("macro mean", text_of(matrix.macro_precision()), text_of(matrix.macro_recall()),
               text_of(matrix.macro_f1()), matrix.num_samples());
  text += fmt::format("  loss {:.4f}, accuracy {}\n", evaluation.loss, text_of(matrix.accuracy()));
  if (!evaluation.ranking) return text;
  const auto at = [&](auto ratio) {
    return text_of(at_threshold(*evaluation.ranking, threshold, ratio));
  };
  return text + fmt::format(
                    "  class 1 at a logit difference of {} (chosen on validation): precision {}, "
                    "recall {}, F1 {}; ROC AUC {}, PR AUC {}\n",
                    text_of(threshold), at(&DecisionCounts::precision), at(&DecisionCounts::recall),
                    at(&DecisionCounts::f1), text_of(evaluation.ranking->roc_auc()),
                    text_of(evaluation.ranking->average_precision()));
}

Json slices_json(const std::vector<SliceReport>& reports, index_t num_classes) {
  Json all = Json::array();
  for (const SliceReport& report : reports) {
    Json slices = Json::array();
    for (const SliceFigures& one : report.slices) {
      Json slice{{"slice", one.name},
                 {"samples", one.samples},
                 {"loss", json_of(one.loss)},
                 {"accuracy", json_of(one.accuracy)},
                 {"macro_f1", json_of(one.macro_f1)}};
      if (num_classes == 2)
        slice.update(Json{{"precision", json_of(one.precision)},
                          {"recall", json_of(one.recall)},
                          {"f1", json_of(one.f1)},
                          {"roc_auc", json_of(one.roc_auc)},
                          {"pr_auc", json_of(one.pr_auc)}});
      if (num_classes > most_classes_shown) {
        slice["tokens"] = one.labels;
        slice["bits_per_token"] = one.loss ? Json(bits_of(*one.loss)) : Json(nullptr);
      }
      slices.push_back(std::move(slice));
    }
    all.push_back({{"by", report.by}, {"slices", std::move(slices)}});
  }
  return all;
}

std::string slices_text(const std::vector<SliceReport>& reports, index_t num_classes) {
  std::string text;
  for (const SliceReport& report : reports) {
    std::size_t width = report.by.size() + 3;
    for (const SliceFigures& one : report.slices) width = std::max(width, one.name.size());
    const auto add = [&](const std::string& name, const std::string& samples,
                         const std::vector<std::string>& cells) {
      text += fmt::format("  {:<{}}  {:>7}", name, width, samples);
      for (const std::string& cell : cells) text += fmt::format("  {:>9}", cell);
      text += '\n';
    };
    std::vector<std::string> head = {"loss", "accuracy", "macro F1"};
    if (num_classes == 2)
      head.insert(head.end(), {"precision", "recall", "F1", "ROC AUC", "PR AUC"});
    if (num_classes > most_classes_shown) head.emplace_back("bits/token");
    add("by " + report.by, "samples", head);
    for (const SliceFigures& one : report.slices) {
      std::vector<std::string> cells = {text_of(one.loss), text_of(one.accuracy),
                                        text_of(one.macro_f1)};
      if (num_classes == 2) {
        for (const auto& value : {one.precision, one.recall, one.f1, one.roc_auc, one.pr_auc})
          cells.push_back(text_of(value));
      }
      if (num_classes > most_classes_shown)
        cells.push_back(one.loss ? fmt::format("{:.4f}", bits_of(*one.loss)) : text_of(one.loss));
      add(one.name, fmt::format("{}", one.samples), cells);
    }
  }
  return text;
}

}  // namespace weft
