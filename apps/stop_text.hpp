// What is said of a run that stopped before its last step, and how to go on with it.
#pragma once

#include <string>

#include "apps/run_start.hpp"
#include "apps/stop_vote.hpp"
#include "core/range.hpp"

namespace weft {

struct StoppedRun {
  StopReason reason = StopReason::none;
  index_t step = 0;         // steps done
  index_t num_steps = 0;    // of the whole run
  std::string folder;       // of the run
  std::string checkpoint;   // of that step; empty: none was saved
  bool saves_none = false;  // no checkpoints in this plan or build
};

// `text` as one word of a POSIX shell.
std::string shell_word(const std::string& text);

// Arguments of a shell that start the same run once more, where it stopped; without the launcher.
std::string resume_command(const RunInputs& inputs, const std::string& run_folder);

// Two lines or three: where and why, what was saved, how to go on.
std::string stop_text(const StoppedRun& run, const RunInputs& inputs);

}  // namespace weft
