#include "core/error.hpp"

#include <string_view>

namespace weft {

namespace {

std::string short_place(const std::source_location& place) {
  std::string_view file = place.file_name();
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos)
    file.remove_prefix(slash + 1);
  return std::string(file) + ":" + std::to_string(place.line());
}

}  // namespace

Error::Error(ExitCode code, const std::string& message, std::source_location place)
    : std::runtime_error(message), code_(code), place_(short_place(place)) {}

}  // namespace weft
