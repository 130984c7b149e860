// Logs of one JSON object a line, each with the number of its "step": what of them still holds when
// a run goes back to an earlier step.
#pragma once

#include <string>
#include <string_view>

#include "core/range.hpp"

namespace weft {

// Whether a step has one line (a step of training) or may have several (evaluations).
enum class LinesPerStep { one, several };

// The lines of `text` with 1 <= step <= `last_step`, in ascending order of steps: where a line goes
// back, because a run was repeated from there, it replaces what came before. What is no whole
// object with an integer "step" is left out: half a line at the end, zeros after a power cut. Every
// line of the result ends with a line feed; lines are else kept byte by byte.
std::string lines_until(std::string_view text, index_t last_step, LinesPerStep lines_per_step);

}  // namespace weft
