// Values of an enumeration's members as a JSON object by their names.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace weft {

// `values[i]` under name_of(static_cast<Name>(i)).
template <class Name, class Values>
nlohmann::ordered_json by_name(const Values& values) {
  nlohmann::ordered_json json;
  for (std::size_t i = 0; i < values.size(); ++i)
    json[std::string(name_of(static_cast<Name>(i)))] = values[i];
  return json;
}

}  // namespace weft
