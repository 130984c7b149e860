// `weft train`: the job. Reads the plan, opens the data, makes or reopens the run folder, trains,
// saves checkpoints, and ends with a summary.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "apps/resume.hpp"
#include "apps/run_start.hpp"
#include "apps/run_trace.hpp"
#include "apps/stop_signals.hpp"
#include "parallel/comm/session.hpp"

namespace weft {

struct TrainOptions {
  RunInputs inputs;
  std::string run_folder;               // empty: runs/<plan name>-<time>
  std::optional<ResumeOptions> resume;  // --resume
  std::optional<TraceOptions> trace;    // --trace
  bool tensorboard = false;             // --tensorboard
  bool json = false;
};

// Collective over the run, which ends early where `signals` or the plan's time limit ask for it:
// saved, with exit code 3 on all ranks; nothing saved: 1. Rank 0 writes text for people to `text`
// and, with `json`, the summary as one line to `out`. Throws AgreedError where all ranks know of
// the fault, else Error.
int train(const TrainOptions& options, Session& session, const StopSignals& signals,
          std::ostream& text, std::ostream& out);

}  // namespace weft
