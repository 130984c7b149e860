// A plan's layout as JSON and in words: the same wherever a command prints one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "parallel/plan/plan.hpp"

namespace weft {

nlohmann::ordered_json layout_json(const Plan& plan);
// What crosses each boundary of stages, a microbatch, from all tp ranks of one replica together:
// [{"behind_block", "activation_bytes" forward, "gradient_bytes" back}].
nlohmann::ordered_json cuts_json(const Plan& plan);
std::string layout_text(const Plan& plan);  // "tp 2 x dp 2 x pp 1, zero 1, exact"

}  // namespace weft
