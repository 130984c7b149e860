// `weft async --replay`: one rank repeats an asynchronous run, update by update in the recorded
// order, each gradient on the values that it was computed on.
#pragma once

#include <iosfwd>
#include <string>

#include "apps/run_start.hpp"
#include "parallel/comm/session.hpp"

namespace weft {

// `run_folder`: of the run; `inputs`: its plan and data. For a session of one rank, else
// Error(usage). Keeps as many copies of the values as the run's largest staleness asks for. Returns
// 0 where all losses and the state have the recorded bits, else 1.
int replay_async(const RunInputs& inputs, const std::string& run_folder, Session& session,
                 bool json, std::ostream& text, std::ostream& out);

}  // namespace weft
