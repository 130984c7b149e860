// The end of `weft train` for people, from summary.json alone.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace weft {

// `path`: of summary.json, the last line.
void print_summary(const nlohmann::ordered_json& summary, const std::string& path,
                   std::ostream& text);

}  // namespace weft
