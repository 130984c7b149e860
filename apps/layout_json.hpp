// A plan's layout as JSON: the same object wherever a command prints one.
#pragma once

#include <nlohmann/json.hpp>

#include "parallel/plan/plan.hpp"

namespace weft {

nlohmann::ordered_json layout_json(const Plan& plan);

}  // namespace weft
