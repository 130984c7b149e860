#include "apps/run_history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

void for_each_line(const std::string& text, const std::function<void(const Json&)>& body) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) body(Json::parse(line));
}

// A number, or nothing: null stands for a metric that is not defined.
std::optional<double> number_at(const Json& line, const std::string& key) {
  const auto entry = line.find(key);
  if (entry == line.end() || !entry->is_number()) return std::nullopt;
  return entry->get<double>();
}

}  // namespace

void RunHistory::read(const std::string& steps, const std::string& evaluations) {
  for_each_line(steps, [&](const Json& line) {
    add_step(number_at(line, "step_ms").value_or(0.0));
    // Logs of earlier versions: the steps alone.
    before_s_ = number_at(line, "elapsed_s").value_or(training_s_);
  });
  for_each_line(evaluations, [&](const Json& line) {
    add_evaluation(line);
    before_s_ = std::max(before_s_, number_at(line, "elapsed_s").value_or(0.0));
  });
}

double RunHistory::elapsed_s(Clock::time_point now) const {
  if (!begin_) return before_s_;
  return before_s_ + std::chrono::duration<double>(now - *begin_).count();
}

Json RunHistory::stamp(Clock::time_point now) const {
  return {{"training_s", training_s_}, {"elapsed_s", elapsed_s(now)}};
}

std::vector<index_t> RunHistory::steps_by_worth(const TargetPlan& target) const {
  const std::string metric = target.is_set() ? target.metric : "accuracy";
  const double sign = target.smaller_is_better() ? -1.0 : 1.0;
  std::map<index_t, double> worth;
  for (const Json& line : evaluations_) {
    const std::optional<double> value = number_at(line, metric);
    // A run that was complete when it was resumed evaluates its last step once more.
    if (value && line.value("split", "") == target.split)
      worth.emplace(line.at("step").get<index_t>(), sign * *value);
  }
  std::vector<index_t> steps;
  for (const auto& [step, value] : worth) steps.push_back(step);
  std::stable_sort(steps.begin(), steps.end(),
                   [&](index_t a, index_t b) { return worth[a] > worth[b]; });
  return steps;
}

Json RunHistory::target_json(const TargetPlan& target) const {
  if (!target.is_set()) return nullptr;
  const bool is_loss = target.smaller_is_better();
  const double goal = is_loss ? target.at_most.value() : target.at_least.value();
  Json json{{"metric", target.metric},
            {"split", target.split},
            {is_loss ? "at_most" : "at_least", goal},
            {"reached", false}};
  for (const char* key : {"step", "epochs", "value", "training_s", "elapsed_s"})
    json[key] = nullptr;

  std::optional<double> best;
  const Json* first = nullptr;  // reached there, and not yet confirmed
  index_t last_step = -1;
  for (const Json& line : evaluations_) {
    // A run that was complete when it was resumed evaluates its last step once more.
    const index_t step = line.at("step");
    if (step == last_step || line.value("split", "") != target.split) continue;
    last_step = step;
    const std::optional<double> value = number_at(line, target.metric);
    if (value)
      best = is_loss ? std::min(best.value_or(*value), *value)
                     : std::max(best.value_or(*value), *value);
    const bool reaches = value && (is_loss ? *value <= goal : *value >= goal);
    if (reaches && first && !json["reached"].get<bool>()) {
      json["reached"] = true;
      json["value"] = first->at(target.metric);
      for (const char* key : {"step", "epochs", "training_s", "elapsed_s"})
        json[key] = first->value(key, Json(nullptr));
    }
    first = reaches ? &line : nullptr;
  }
  json["best"] = best ? Json(*best) : Json(nullptr);
  return json;
}

std::string target_text(const Json& target) {
  if (target.is_null()) return "";
  const bool is_loss = target.contains("at_most");
  const std::string goal = fmt::format("target {} {} {}", target["metric"].get<std::string>(),
                                       is_loss ? "at most" : "at least",
                                       target[is_loss ? "at_most" : "at_least"].get<double>());
  const auto number = [&](const char* key) {
    return target[key].is_null() ? std::string("?")
                                 : fmt::format("{:.4g}", target[key].get<double>());
  };
  if (!target["reached"].get<bool>())
    return goal + ": not reached at two evaluations one after the other; best " + number("best");
  return fmt::format(
      "{}: reached at step {} after {} epochs, {} s of steps, {} s with evaluation and saving",
      goal, target["step"].get<index_t>(), number("epochs"), number("training_s"),
      number("elapsed_s"));
}

}  // namespace weft
