// The end of `weft train`: summary.json, and the same for people.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/rank_figures.hpp"
#include "apps/run_clock.hpp"
#include "apps/run_history.hpp"
#include "apps/step_statistics.hpp"
#include "apps/stop_vote.hpp"
#include "apps/trainer.hpp"
#include "core/hash.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// What rank 0 knows of a run at its end.
struct RunReport {
  const Plan& plan;
  const Trainer& trainer;
  const TrainingData& data;
  Hash128 state;
  const std::vector<RankFigures>& ranks;
  StopReason stopped;
  index_t first_step;  // steps done when this process began
  const StepStatistics& times;
  const nlohmann::ordered_json& metrics;  // of the last evaluation; a stopped run may have none
  index_t test_split_uses;
  const RunHistory& history;
  const RunClock& clock;
  double first_step_done_ms;  // since the trainer began
  nlohmann::ordered_json checkpoints;
  nlohmann::ordered_json integrity;
  nlohmann::ordered_json stages;  // StageResplit's
};

// Keys: RECORDS.md.
nlohmann::ordered_json summary_json(const RunReport& report);

// Out of summary.json alone. `path`: of summary.json, the last line. Why a run was stopped is not
// in it (stop_text).
void print_summary(const nlohmann::ordered_json& summary, const std::string& path,
                   std::ostream& text);

}  // namespace weft
