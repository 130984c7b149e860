#include "apps/last_object.hpp"

#include <nlohmann/json.hpp>

namespace weft {

nlohmann::ordered_json last_object(const std::string& text) {
  using Json = nlohmann::ordered_json;
  Json whole = Json::parse(text, nullptr, false);
  if (whole.is_object()) return whole;
  const std::size_t end = text.find_last_not_of("\r\n\t ");
  if (end == std::string::npos) return nullptr;
  const std::size_t begin = text.find_last_of('\n', end);
  return Json::parse(text.substr(begin == std::string::npos ? 0 : begin + 1), nullptr, false);
}

}  // namespace weft
