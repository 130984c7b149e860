// What a run folder says to the drill, and the harm that the drill does to a checkpoint in it.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "apps/drill_disturbance.hpp"
#include "core/range.hpp"

namespace weft {

// Of a run that has ended with 0.
struct DrillOutcome {
  std::string state_hash;
  std::string loss_hash;
  double total_s = 0.0;  // of the last process, without its launcher
  double start_s = 0.0;
  double longest_step_s = 0.0;
  index_t num_saved = 0;
};
// Throws Error(failed) where summary.json is missing or is not a summary.
DrillOutcome read_outcome(const std::string& run_folder);

// Lines of run.jsonl; 0 where there is none.
index_t num_logged_steps(const std::string& run_folder);
// Empty, or why run.jsonl does not have each of the steps 1 .. num_steps once, in order.
std::string fault_of_log(const std::string& run_folder, index_t num_steps);
// From events.jsonl: where each process that said so began.
std::vector<index_t> resumed_from(const std::string& run_folder);
// By name; 0 where there is none.
index_t newest_checkpoint(const std::string& run_folder);

// Flips a bit of, or cuts, a file of the newest checkpoint, all drawn. Says what was done. Throws
// Error(failed) where there is none or the system refuses.
std::string alter_newest_checkpoint(const std::string& run_folder, DrillDeed deed,
                                    std::mt19937_64& random);

}  // namespace weft
