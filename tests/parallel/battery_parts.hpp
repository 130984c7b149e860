// What the battery's files share: how a fault is told, and this rank's part of a reduction.
#pragma once

#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/comm/communicator.hpp"
#include "tests/parallel/tree_reference.hpp"

namespace weft::battery {

inline void expect(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message);
}

template <class T>
constexpr Precision precision_of = sizeof(T) == 4 ? Precision::f32 : Precision::f64;

// The maximal nodes of a rank's leaves as buffers.
template <class T>
struct Nodes {
  Nodes(Range leaves, index_t num_leaves, index_t count) {
    for (const Range node : reference::nodes_in(leaves, num_leaves)) {
      buffers.push_back(reference::hostile_sums<T>(node, count));
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> result;
    for (auto& buffer : buffers) result.push_back(buffer.data());
    return result;
  }
  std::vector<std::vector<T>> buffers;
};

template <class T>
std::vector<T> sum_of_tree(index_t num_leaves, index_t count) {
  return reference::hostile_sums<T>({0, num_leaves}, count);
}

template <class T>
void expect_bits(const std::vector<T>& got, const T* expected, const std::string& what) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof(T)) == 0) continue;
    char values[80];  // hexadecimal: they differ in the last bit
    std::snprintf(values, sizeof values, "%a, not %a", static_cast<double>(got[i]),
                  static_cast<double>(expected[i]));
    throw std::runtime_error(what + ": element " + std::to_string(i) + " is " + values);
  }
}

inline std::string text(const Communicator& comm, std::string_view what, Algorithm algorithm,
                        index_t leaves, index_t count) {
  return std::string(what) + " by " + std::string(name_of(algorithm)) + ", rank " +
         std::to_string(comm.rank()) + " of " + std::to_string(comm.size()) + ", " +
         std::to_string(leaves) + " leaves, " + std::to_string(count) + " elements";
}

// Collective. battery_reductions.cpp
void check_reductions(Communicator& comm, bool full);
// Collective. battery_copies.cpp
void check_copies(Communicator& comm);
// Collective. battery_messages.cpp
void check_messages(Communicator& comm);

}  // namespace weft::battery
