// `weft async`: the plan's data parallel replicas as workers that do not wait for each other, an
// experiment beside the synchronous run. Each update's staleness is recorded, and so is the order,
// by which --replay repeats the run to its bits on one rank.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "apps/run_start.hpp"
#include "parallel/comm/session.hpp"

namespace weft {

struct AsyncOptions {
  RunInputs inputs = {};
  std::string run_folder = {};                // empty: default_run_folder()
  std::optional<index_t> max_staleness = {};  // default: twice what a first round needs
  std::string delays = {};                    // apps/injected_delay.hpp
  std::string replay = {};                    // a run folder whose updates are repeated
  bool json = false;
};

// Collective over the run. Rank 0 owns the values and the optimizer, applies the updates, evaluates
// at the end and writes the run folder. Throws AgreedError where all ranks know of the fault, else
// Error. With --replay: 0 where all losses and the state have the recorded bits, else 1.
int train_async(const AsyncOptions& options, Session& session, std::ostream& text,
                std::ostream& out);

}  // namespace weft
