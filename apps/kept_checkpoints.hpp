// What the plan keeps of a run's checkpoints beyond the newest: the same for the run itself and for
// those who look at its folder later.
#pragma once

#include <optional>
#include <string>

#include "apps/run_history.hpp"
#include "io/checkpoint/retention.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

Retention retention_of(const Plan& plan, const RunHistory& history);

// From plan.toml and eval.jsonl beside a run's folder `checkpoints`, as they are now; none where no
// plan lies there. Throws Error(usage) where the plan is none of this version of weft, Error(data)
// where a file cannot be read.
std::optional<Retention> recorded_retention(const std::string& checkpoints);

}  // namespace weft
