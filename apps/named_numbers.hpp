// Numbers by name, in an order that means something: rows of an account, kinds of memory.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

}  // namespace weft
