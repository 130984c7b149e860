// The tree of EXACT section 2 written down a second time, as the recursion itself, and the data
// that shows any other order. Uses nothing of core/reduce_tree.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/range.hpp"

namespace weft::reference {

// tree[a,b) = leaf a; else tree[a,a+h) + tree[a+h,b), h = largest power of two < b-a.
template <class Leaf, class Add>
auto tree(index_t a, index_t b, const Leaf& leaf, const Add& add) -> decltype(leaf(a)) {
  if (b - a == 1) return leaf(a);
  index_t h = 1;
  while (2 * h < b - a) h *= 2;
  return add(tree(a, a + h, leaf, add), tree(a + h, b, leaf, add));
}

// The nodes of tree[a,b) that lie in `range` and whose parent does not, in index order.
inline void append_nodes(index_t a, index_t b, Range range, std::vector<Range>& nodes) {
  if (b <= range.begin || a >= range.end) return;
  if (range.begin <= a && b <= range.end) {
    nodes.push_back({a, b});
    return;
  }
  index_t h = 1;
  while (2 * h < b - a) h *= 2;
  append_nodes(a, a + h, range, nodes);
  append_nodes(a + h, b, range, nodes);
}

inline std::vector<Range> nodes_in(Range range, index_t num_leaves) {
  std::vector<Range> nodes;
  if (range.begin < range.end) append_nodes(0, num_leaves, range, nodes);
  return nodes;
}

inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The hostile data repeats itself after so many elements, so that long vectors cost little to
// check.
inline constexpr index_t hostile_period = 61;

// Element i of a leaf: values that absorb, cancel or vanish when added in another order. Element 0
// is -0 in all leaves: a sum that starts from 0 gives +0.
template <class T>
T hostile_value(index_t leaf, index_t i) {
  i %= hostile_period;
  if (i == 0) return T{-0.0};
  const T tiny = std::numeric_limits<T>::epsilon() / 2;
  const T huge = T{10} / std::numeric_limits<T>::epsilon();
  const T denormal = std::numeric_limits<T>::denorm_min();
  const T rounding[] = {T{1}, tiny, T{-1}, tiny, T{3}, -tiny, T{1}, tiny};
  const T cancelling[] = {T{1}, huge, -huge, T{-1}, tiny, huge, -huge, T{3}};
  const T vanishing[] = {denormal, T{-0.0}, T{0}, -3 * denormal, T{1}, T{-1}, huge, -huge};
  const auto hash = mix(mix(static_cast<std::uint64_t>(leaf)) ^ static_cast<std::uint64_t>(i));
  const T* const kind = i % 3 == 0 ? rounding : i % 3 == 1 ? cancelling : vanishing;
  return kind[hash % 8];
}

template <class T>
T hostile_sum(Range leaves, index_t i) {
  return tree(
      leaves.begin, leaves.end, [i](index_t leaf) { return hostile_value<T>(leaf, i); },
      [](T left, T right) { return left + right; });
}

template <class T>
std::vector<T> hostile_sums(Range leaves, index_t count) {
  std::vector<T> sums;
  for (index_t i = 0; i < count; ++i) {
    sums.push_back(i < hostile_period ? hostile_sum<T>(leaves, i)
                                      : sums[static_cast<std::size_t>(i - hostile_period)]);
  }
  return sums;
}

}  // namespace weft::reference
