// Numbers and plain records on the way to other ranks: one program on all of them, so bytes are
// enough. For set-up and small records, as the strings of a communicator are.
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "parallel/comm/communicator.hpp"

namespace weft {

// The bytes of `values`, which must outlive them.
template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> values_of(std::string_view bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// Collective over `group`: each member's values, in group order. Their numbers may differ.
template <class T>
std::vector<std::vector<T>> all_gather_values(Communicator& group, std::string_view name,
                                              const std::vector<T>& mine) {
  std::vector<std::vector<T>> all;
  for (const std::string& bytes : group.all_gather_strings(name, bytes_of(mine)))
    all.push_back(values_of<T>(bytes));
  return all;
}

}  // namespace weft
