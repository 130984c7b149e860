// The end of `weft train` for people, from summary.json alone.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace weft {

// `path`: of summary.json, the last line. Why a run was stopped is not in it (stop_text).
void print_summary(const nlohmann::ordered_json& summary, const std::string& path,
                   std::ostream& text);

}  // namespace weft
