// `weft check --prose`: a plan as text for an appendix - what is predicted from what, how the data
// is divided, what a step does, on which machines, against which baseline, and what would be
// accepted. Every sentence follows from the plan.
#pragma once

#include <string>

#include "parallel/plan/plan.hpp"

namespace weft {

// Markdown, lines of at most 100 characters. For a plan without faults.
std::string plan_prose(const Plan& plan);

}  // namespace weft
