// layout.stages = "measured": the first steps of a process are timed, stage by stage; where another
// split is predicted to gain, the job is told to change to it, and what that achieved is measured.
// Decides and tells; the job saves, moves the state and writes. No bit depends on any of it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/stage_clock.hpp"
#include "apps/trainer.hpp"
#include "parallel/pipeline/stage_split.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// What is known once stages are measured. Times are milliseconds; costs and passes of a microbatch.
struct SplitChoice {
  std::vector<index_t> before, after;      // blocks of each stage; the same: none is better
  std::vector<pipeline::StageCost> costs;  // of each stage's slowest rank
  double step_ms = 0.0;                    // median of the measured steps
  double pipeline_before_ms = 0.0;         // the schedule's length with these costs
  double pipeline_after_ms = 0.0;

  // What is no part of the pipeline is taken to stay as it is.
  double predicted_step_ms() const { return step_ms - (pipeline_before_ms - pipeline_after_ms); }
  double predicted_gain() const { return 1.0 - predicted_step_ms() / step_ms; }
};

// The best split of the plan's blocks, of the replica with most microbatches.
SplitChoice choose_split(const Plan& plan, std::vector<index_t> before,
                         std::vector<pipeline::StageCost> costs, double step_ms);

// Blocks of each stage; those of an even split where the plan has no list.
std::vector<index_t> blocks_of_stages(const Plan& plan);

// The split that the run with these events (text of events.jsonl) came to last, on the layout that
// the plan has now; empty where there is none. Lines that cannot be read are passed over.
std::vector<index_t> split_of_events(const std::string& events, const Plan& plan);

class StageResplit {
 public:
  // Steps of this process that are left out, and those measured; before and after a split alike.
  static constexpr index_t num_warm_up = 3;
  static constexpr index_t num_measured = 10;
  static constexpr double least_gain = 0.02;

  // Local, before this process's first step. Both must outlive its last use.
  StageResplit(const Plan& plan, Trainer& trainer);

  // Collective, after each step of this process but its last one. True on all ranks alike, once at
  // most: the trainer is to be split as stages() says.
  bool after_step(double step_ms);
  const std::vector<index_t>& stages() const { return choice_->after; }
  // After that: what came of it. `fault`: why the state could not be moved, else empty.
  void end(double moved_ms, const std::string& fault);

  // Rank 0: what happened since the last call, for people and as an event, both empty: nothing.
  struct News {
    std::string text;
    std::string event;
  };
  News take_news();
  // For the summary, on rank 0; null where the plan does not ask.
  nlohmann::ordered_json json() const;

 private:
  bool is_asked_for() const { return plan_.layout.measures_stages && plan_.layout.pp > 1; }
  // Collective.
  void choose();
  void judge();
  void tell(std::string text, nlohmann::ordered_json event);

  const Plan& plan_;
  Trainer& trainer_;
  std::optional<StageClock> clock_;  // while stages are measured
  index_t num_steps_ = 0;            // of this process
  bool is_split_ = false;
  std::vector<double> step_ms_;  // since the split, or the beginning; without warm-up
  index_t num_since_ = 0;        // all steps since then
  std::optional<SplitChoice> choice_;
  index_t chosen_at_ = 0;  // steps done
  double moved_ms_ = 0.0;
  std::optional<double> step_ms_after_;
  std::string why_not_;
  std::vector<News> news_;
};

}  // namespace weft
