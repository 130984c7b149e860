// What a command with --json has left in a file: its standard output, whose last line is an object.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace weft {

// The object that the text is, or that its last line is; otherwise what is no object.
nlohmann::ordered_json last_object(const std::string& text);

}  // namespace weft
