// `weft check`: what a plan means before any device is touched - its layout, batch arithmetic,
// balance, parameters, bytes and messages per rank, and what about it costs time. Runs in one
// process and computes everything from the plan's numbers.
#pragma once

#include <iosfwd>
#include <optional>

#include "parallel/plan/plan.hpp"

namespace weft {

// Writes the report for people to `text` and, with `json`, one JSON object on one line to `out`.
// Returns the exit code: 0, or 2 with every fault listed where the plan is not legal or
// `num_ranks` (if given) are not what its layout needs.
int check_plan(const Plan& plan, std::optional<index_t> num_ranks, bool json, std::ostream& text,
               std::ostream& out);

}  // namespace weft
