// When a checkpoint is due by the clock: so long after the one before, or as often as the share of
// time allows that steps may wait for saving.
#pragma once

#include <chrono>
#include <optional>

#include "core/range.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// A save costs what steps wait for it: all of it, or with checkpoint.async the copy and what comes
// after. It is due once the time since the last one began is the longest such wait so far divided
// by the budget (the rule of CheckFreq, Mohan et al., FAST 2021, with waiting alone as the cost).
// As long as none was made, a save counts as one step: the first is due after 1 / budget steps.
class SavePace {
 public:
  using Clock = std::chrono::steady_clock;

  // `now` is this moment, wherever it comes from (tests).
  explicit SavePace(const CheckpointPlan& plan) : plan_(plan) {}

  void begin_training(Clock::time_point now = Clock::now()) { begin_ = last_begin_ = now; }
  // No step of this process follows: what comes is no wait of steps.
  void end_training(Clock::time_point now = Clock::now()) { end_ = now; }
  void begin_save(Clock::time_point now = Clock::now());
  // Steps waited for the save that began last.
  void add_wait(Clock::duration wait);

  // Once `num_steps` steps of this process are done; no save is under way.
  bool is_due(index_t num_steps, Clock::time_point now = Clock::now()) const;

  Clock::time_point last_begin() const { return last_begin_; }  // of a save, or of training
  // The share of the time since training began, until it ended, that steps waited.
  double measured_overhead(Clock::time_point now = Clock::now()) const;
  // What the budget has led to: seconds from one save's begin to the next one's.
  std::optional<double> interval_s() const;

 private:
  CheckpointPlan plan_;
  Clock::time_point begin_, last_begin_;
  std::optional<Clock::time_point> end_;
  Clock::duration waited_{};   // for all saves
  Clock::duration current_{};  // for the one that began last
  Clock::duration longest_{};
  bool is_one_known_ = false;
};

}  // namespace weft
