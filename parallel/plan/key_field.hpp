// For visits over the types that a key's field can have. Internal to this folder.
#pragma once

#include "core/overloaded.hpp"
#include "parallel/plan/plan_keys.hpp"

namespace weft {

template <class T>
using FieldOf = T& (*)(Plan&);

}  // namespace weft
