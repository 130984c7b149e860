// `weft profile`: where each rank's steps go, to the last nanosecond; who waited for whom, and why;
// buckets of gradients; memory at the peak beside what `weft check` foresees.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "apps/run_start.hpp"
#include "parallel/comm/session.hpp"

namespace weft {

struct ProfileOptions {
  RunInputs inputs = {};
  index_t steps = 100;          // measured
  index_t warm_up = 20;         // before them
  std::string delays = {};      // apps/injected_delay.hpp
  std::string trace_path = {};  // empty: no file
  bool json = false;
};

// Collective over the run. Rank 0 writes tables to `text` and, with `json`, one line to `out`.
// Saves and evaluates nothing. Throws AgreedError where all ranks know of the fault, else Error.
int profile(const ProfileOptions& options, Session& session, std::ostream& text, std::ostream& out);

}  // namespace weft
