// `weft layouts`: one plan on each layout of a grid, inside one allocation; what each costs, and
// whether all have the same bits.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "apps/run_start.hpp"
#include "parallel/comm/session.hpp"

namespace weft {

struct LayoutsOptions {
  RunInputs inputs;
  std::optional<std::string> grid;  // apps/grid_axis.hpp; else that of the plan's [study]
  index_t repeats = 1;              // of the whole list
  std::optional<index_t> steps;     // of each run; else run.steps of the plan, else 20
  index_t warm_up = 2;              // of them not measured
  std::string scaling = "strong";   // or "weak": the global batch grows with dp
  bool evaluates = false;           // on the validation part, after each run
  bool json = false;
};

// Collective over the run. A layout of n ranks runs on the first n; the others wait. Rank 0 writes
// text for people to `text` and, with `json`, one line to `out`; where a layout fails, of those
// measured before, with the error in the JSON. Returns ExitCode::failed where
// layouts differ in exact mode. Throws AgreedError where all ranks know of the fault, else Error.
int layouts(const LayoutsOptions& options, Session& session, std::ostream& text, std::ostream& out);

}  // namespace weft
