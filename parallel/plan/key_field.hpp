// For visits over the types that a key's field can have. Internal to this folder.
#pragma once

#include "parallel/plan/plan_keys.hpp"

namespace weft {

// One function object out of several: the case of each type.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

template <class T>
using FieldOf = T& (*)(Plan&);

}  // namespace weft
