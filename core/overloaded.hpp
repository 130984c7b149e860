// One function object out of several, for std::visit: the case of each type.
#pragma once

namespace weft {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace weft
