// `weft check PLAN --run DIR`: whether a run did what a plan says - the same plan but for its
// layout, as many updates, and in each replica the samples that the plan gives it.
#pragma once

#include <iosfwd>
#include <string>

#include "apps/run_start.hpp"

namespace weft {

// Reads the run's summary and, to know which samples are meant, opens the data as training does.
// Writes what was compared to `text` and, with `json`, one JSON object on one line to `out`.
// Returns 0, or 1 where the run is another one's or not at its end; throws Error(data) where there
// is no summary.
int check_run(const RunInputs& inputs, const Plan& plan, const std::string& run_folder, bool json,
              std::ostream& text, std::ostream& out);

}  // namespace weft
