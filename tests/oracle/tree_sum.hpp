// The fixed tree of exact mode as its recursive definition says it (EXACT section 2). It is told
// all leaves; how ranks merge theirs without knowing the others is what it judges.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <vector>

namespace weft::oracle {

// tree[a,b) = leaf a, if b - a = 1; else tree[a,a+h) + tree[a+h,b), h = largest power of two < b -
// a. `add(left, right)` makes it a float sum, a sum of vectors, or an expression to compare.
template <class Value, class Add>
Value tree_fold(const std::vector<Value>& leaves, std::size_t a, std::size_t b, Add add) {
  if (a >= b || b > leaves.size()) throw std::invalid_argument("oracle: tree_fold: empty range");
  if (b - a == 1) return leaves[a];
  std::size_t h = 1;
  while (2 * h < b - a) h *= 2;
  return add(tree_fold(leaves, a, a + h, add), tree_fold(leaves, a + h, b, add));
}

// The sum of float or double leaves, each addition rounded to T.
template <class T>
T tree_sum(const std::vector<T>& leaves) {
  return tree_fold(leaves, 0, leaves.size(), [](T left, T right) {
    const T sum = left + right;
    return sum;
  });
}

}  // namespace weft::oracle
