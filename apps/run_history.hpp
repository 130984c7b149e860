// A run over all its parts, from its first step on, however often it was resumed: time so far, and
// when it reached the plan's target. What a part does not know itself it reads from the run's log.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

class RunHistory {
 public:
  using Clock = std::chrono::steady_clock;

  // Texts of run.jsonl and eval.jsonl as a resume finds them, cut back to its step.
  void read(const std::string& steps, const std::string& evaluations);

  // This part's first step begins.
  void begin(Clock::time_point now = Clock::now()) { begin_ = now; }
  void add_step(double step_ms) { training_s_ += 1e-3 * step_ms; }
  // A line of eval.jsonl: "step", metrics by their names, and what stamp() adds.
  void add_evaluation(const nlohmann::ordered_json& line) { evaluations_.push_back(line); }

  // Of the steps that led to where the run is: each counts once, those lost in a kill and repeated
  // do not.
  double training_s() const { return training_s_; }
  // The same with evaluations, saving and output; start-up of a part is not in it, and neither is
  // the save that a resume began from, for which no line was written any more.
  double elapsed_s(Clock::time_point now = Clock::now()) const;
  // {"training_s", "elapsed_s"}, as now.
  nlohmann::ordered_json stamp(Clock::time_point now = Clock::now()) const;

  // The evaluated steps, the best first: by the target's metric, or by validation accuracy where
  // there is no target. Of equal ones the earlier; without those whose metric is not defined.
  std::vector<index_t> steps_by_worth(const TargetPlan& target) const;

  // What the summary says of the target: null where the plan has none. It counts as reached,
  // stably, at the first of two evaluations one after the other that both reach it.
  nlohmann::ordered_json target_json(const TargetPlan& target) const;

 private:
  double training_s_ = 0.0;
  double before_s_ = 0.0;  // elapsed, in the parts before this one
  std::optional<Clock::time_point> begin_;
  std::vector<nlohmann::ordered_json> evaluations_;
};

// For people; empty without a target.
std::string target_text(const nlohmann::ordered_json& target);

}  // namespace weft
