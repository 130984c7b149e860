// The one tree by which weft adds floats across pieces (EXACT section 2).
//
// tree[a,b) = leaf a, if b-a = 1; else tree[a,a+h) + tree[a+h,b), h = largest power of two < b-a.
//
//   L = 6:        [0,6)            Two values may be added only if they are the two children of
//               /       \          one node. That makes the sum a function of the leaves and L,
//           [0,4)       [4,6)      whoever holds which of them and whatever arrives first.
//           /   \       /   \      .
//       [0,2) [2,4)    4     5
//
// A node is [k*2^j, min((k+1)*2^j, L)). A range [a,b) of leaves is its maximal nodes, at most
// 2*ceil(log2 L)-2 of them. This file knows ranges and how to merge; it adds nothing itself.
#pragma once

#include <utility>
#include <vector>

#include "core/range.hpp"

namespace weft::reduce_tree {

// True where [r.begin, r.end) is a node of the tree over `num_leaves` leaves.
bool is_node(Range r, index_t num_leaves);

// True where `left` and `right` are the two children of one node.
bool are_children(Range left, Range right, index_t num_leaves);

// The maximal nodes of `leaves` in index order; empty for an empty range.
std::vector<Range> maximal_nodes(Range leaves, index_t num_leaves);

// Mean number P of maximal nodes a rank holds when `num_leaves` are cut over `num_ranks` by the
// range rule: reduce-scatter moves P times the bytes of a ring's.
double mean_nodes(index_t num_leaves, index_t num_ranks);

// Adjacent nodes in index order, merged as far as the law allows. `Value` is moved, never copied;
// `add(left, right)` returns left + right and may reuse either.
template <class Value>
class Stack {
 public:
  struct Node {
    Range range;
    Value value;
  };

  explicit Stack(index_t num_leaves) : num_leaves_(num_leaves) {}

  // Adds the node `range`, which must begin where the last one ended (the first may begin
  // anywhere).
  template <class Add>
  void push(Range range, Value value, Add&& add) {
    while (!nodes_.empty() && are_children(nodes_.back().range, range, num_leaves_)) {
      value = add(std::move(nodes_.back().value), std::move(value));
      range.begin = nodes_.back().range.begin;
      nodes_.pop_back();
    }
    nodes_.push_back({range, std::move(value)});
  }

  // The nodes that push(range) will merge with, innermost first: those who add in one pass over
  // memory, or before the leaf is complete, ask for them.
  std::vector<Node*> merges_of(Range range) {
    std::vector<Node*> merges;
    for (auto left = nodes_.rbegin(); left != nodes_.rend(); ++left) {
      if (!are_children(left->range, range, num_leaves_)) break;
      merges.push_back(&*left);
      range.begin = left->range.begin;
    }
    return merges;
  }

  // push() where the sums are made already, in the value of the last of merges_of(range); `value`
  // stays only where there is none to merge with.
  void push_merged(Range range, Value value) {
    push(range, std::move(value), [](Value left, Value) { return left; });
  }

  std::vector<Node>& nodes() { return nodes_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  void clear() { nodes_.clear(); }

 private:
  index_t num_leaves_;
  std::vector<Node> nodes_;
};

}  // namespace weft::reduce_tree
