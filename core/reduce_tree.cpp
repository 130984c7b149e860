#include "core/reduce_tree.hpp"

#include <algorithm>
#include <bit>

namespace weft::reduce_tree {

namespace {

// The size of a node's full form: the smallest power of two that covers it.
index_t span_of(Range r) {
  return static_cast<index_t>(std::bit_ceil(static_cast<std::uint64_t>(r.size())));
}

}  // namespace

bool is_node(Range r, index_t num_leaves) {
  if (r.empty() || r.begin < 0 || r.end > num_leaves) return false;
  const index_t span = span_of(r);
  return r.begin % span == 0 && r.end == std::min(r.begin + span, num_leaves);
}

bool are_children(Range left, Range right, index_t num_leaves) {
  if (left.end != right.begin || right.empty()) return false;
  const index_t half = left.size();
  return std::has_single_bit(static_cast<std::uint64_t>(half)) && left.begin % (2 * half) == 0 &&
         right.end == std::min(left.begin + 2 * half, num_leaves);
}

std::vector<Range> maximal_nodes(Range leaves, index_t num_leaves) {
  std::vector<Range> nodes;
  while (!leaves.empty()) {
    // The widest node that begins here and ends inside the range.
    index_t span = 1;
    const auto end_of = [&](index_t s) { return std::min(leaves.begin + s, num_leaves); };
    while (leaves.begin % (2 * span) == 0 && end_of(2 * span) <= leaves.end &&
           end_of(span) < num_leaves)
      span *= 2;
    nodes.push_back({leaves.begin, end_of(span)});
    leaves.begin = nodes.back().end;
  }
  return nodes;
}

double mean_nodes(index_t num_leaves, index_t num_ranks) {
  double sum = 0;
  for (index_t rank = 0; rank < num_ranks; ++rank) {
    sum +=
        static_cast<double>(maximal_nodes(part_of(rank, num_ranks, num_leaves), num_leaves).size());
  }
  return sum / static_cast<double>(num_ranks);
}

}  // namespace weft::reduce_tree
