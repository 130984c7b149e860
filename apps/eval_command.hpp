// `weft eval`: what a checkpoint is worth on a named split, on any layout. Each use of the test
// split is recorded in the run folder before its figures are shown.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "apps/run_start.hpp"
#include "parallel/comm/session.hpp"

namespace weft {

struct EvalOptions {
  RunInputs inputs = {};
  std::string checkpoint = {};           // its folder, or a run folder: its newest valid one
  std::string split = {};                // "validation" or "test"
  std::vector<std::string> slices = {};  // words of io/sample_slices
  bool allow_plan_change = false;
  bool json = false;
};

// Collective over the session. Rank 0 writes a table to `text` and, with `json`, one line to `out`.
// Throws AgreedError: (data) where there is no valid checkpoint, (usage) where it is of another
// model, task or data.
int evaluate_checkpoint(const EvalOptions& options, Session& session, std::ostream& text,
                        std::ostream& out);

}  // namespace weft
