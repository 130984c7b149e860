// Steps that retention leaves alone: the file PINS of a run's folder checkpoints.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

// The steps in the folder's file PINS: a number a line, # begins a comment; empty where there is no
// such file. Throws Error(data) that names the line where it cannot be read: what one meant to keep
// must not go for a slip of the pen.
std::set<index_t> pinned_steps(const std::string& folder);
// Adds those that are not yet in it, a line each. Only for the holder of the lease.
void pin_steps(const std::string& folder, const std::vector<index_t>& steps);

}  // namespace weft
