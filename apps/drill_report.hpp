// What a drill says: a line a try, the verdict with the command that repeats a failed try, and the
// record for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/drill_try.hpp"

namespace weft {

std::string drill_table_head();
std::string drill_table_row(const DrillTryResult& one);
// The same numbers for programs.
nlohmann::ordered_json drill_json(const DrillSetup& setup, const std::string& plan_name,
                                  const DrillOutcome& undisturbed,
                                  const std::vector<DrillTryResult>& tries);

}  // namespace weft
