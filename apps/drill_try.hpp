// One try of a drill: a run that is started, disturbed, resumed on other layouts until it ends, and
// judged. And what all tries share: the plan's runs, how they are started, the undisturbed one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/drill_disturbance.hpp"
#include "apps/drill_process.hpp"
#include "apps/drill_record.hpp"
#include "apps/layout_grid.hpp"
#include "apps/progress_line.hpp"
#include "apps/run_start.hpp"

namespace weft {

struct DrillSetup {
  RunInputs inputs;      // with the overrides of the drill itself, but for the layout
  std::string launcher;  // of its user; empty: ours
  std::string folder;
  DrillLength length;
  std::vector<GridLayout> layouts;  // the first one is the undisturbed run's
  std::uint64_t seed = 0;
  double deadline_s = 0.0;  // of a run; 0: none
  double timeout_s = 0.0;   // comm.timeout_s of disturbed runs; 0: the plan's
};

// Starts `weft train` on a layout, in a folder below `setup.folder`, and waits for its end.
// `output_path` gets what it says; `label` is for the progress line.
DrillEnd run_drill_job(const DrillSetup& setup, const GridLayout& layout,
                       const std::string& run_folder, const std::string& output_path,
                       const std::optional<drill::Order>& order, const std::string& label,
                       ProgressLine& progress);

// The last line that weft itself wrote to a file of output; else its last line.
std::string last_words(const std::string& output_path);

enum class DrillVerdict { same, differs, hang, lost_state, not_reached, failed, interrupted };
std::string_view name_of(DrillVerdict verdict);

struct DrillPart {
  std::string layout;
  std::string order;  // empty: not disturbed
  int exit_code = 0;
  double seconds = 0.0;
};

struct DrillTryResult {
  index_t number = 0;  // from 1
  Disturbance disturbance = {};
  index_t num_kills = 0;  // of a job that is killed again and again; else there is a disturbance
  std::string done = {};  // what was done to it, for people
  std::vector<DrillPart> parts = {};
  bool came_too_late = false;  // a moment after the run's end: nothing was disturbed
  std::optional<index_t> resumed_from = {};
  index_t lost_steps = 0;  // done twice
  DrillVerdict verdict = DrillVerdict::failed;
  std::string reason = {};  // empty: same
  std::string folder = {};

  double seconds() const;
};

// Try `number`, the same for the same seed but for moments in time. `span_s`: how long the
// undisturbed run worked.
DrillTryResult run_drill_try(const DrillSetup& setup, const DrillOutcome& undisturbed,
                             double span_s, index_t number, const Disturbance& disturbance,
                             const std::string& label, ProgressLine& progress);
// The same with `num_kills` kills of one job, each at one of `points` and on a layout drawn anew.
DrillTryResult run_kill_series(const DrillSetup& setup, const DrillOutcome& undisturbed,
                               index_t num_kills, const std::vector<Disturbance>& points,
                               index_t number, const std::string& label, ProgressLine& progress);

}  // namespace weft
