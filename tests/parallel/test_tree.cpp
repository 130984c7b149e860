// The tree with symbolic values: a sum is the hash of its expression, so that two sums are equal
// only if they were built alike.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "core/reduce_tree.hpp"
#include "parallel/comm/algorithms.hpp"
#include "tests/parallel/tree_reference.hpp"

namespace weft {

namespace {

using Expression = std::uint64_t;

Expression leaf(index_t i) { return reference::mix(static_cast<std::uint64_t>(i)); }
Expression plus(Expression left, Expression right) {
  return reference::mix(left * 3 + reference::mix(right));
}
Expression node(Range r) { return reference::tree(r.begin, r.end, leaf, plus); }

using Stack = reduce_tree::Stack<Expression>;

// A rank folds its leaves as they come.
std::vector<Stack::Node> fold(Range leaves, index_t num_leaves) {
  Stack stack(num_leaves);
  for (index_t i = leaves.begin; i < leaves.end; ++i) stack.push({i, i + 1}, leaf(i), plus);
  return stack.nodes();
}

// Ranks fold, an owner pushes what they send: the root, checking each step.
void check_cuts(const std::vector<index_t>& cuts, index_t num_leaves) {
  Stack owner(num_leaves);
  for (std::size_t rank = 0; rank + 1 < cuts.size(); ++rank) {
    const Range leaves{cuts[rank], cuts[rank + 1]};
    const auto nodes = fold(leaves, num_leaves);
    std::vector<Range> ranges;
    for (const auto& n : nodes) {
      ranges.push_back(n.range);
      REQUIRE(n.value == node(n.range));
    }
    REQUIRE(ranges == reference::nodes_in(leaves, num_leaves));
    REQUIRE(ranges == reduce_tree::maximal_nodes(leaves, num_leaves));
    for (const auto& n : nodes) owner.push(n.range, n.value, plus);
  }
  REQUIRE(owner.nodes().size() == 1);
  REQUIRE(owner.nodes()[0].value == node({0, num_leaves}));
}

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

}  // namespace

TEST_CASE("blocks of leaves, cut evenly or anyhow, make one expression") {
  std::mt19937 random(20240607);
  for (index_t num_leaves = 1; num_leaves <= 69; ++num_leaves) {
    for (int num_ranks = 1; num_ranks <= 16; ++num_ranks) {
      std::vector<index_t> even, odd;
      for (int rank = 0; rank <= num_ranks; ++rank) {
        even.push_back(rank * num_leaves / num_ranks);
        odd.push_back(rank == 0 ? 0
                      : rank == num_ranks
                          ? num_leaves
                          : static_cast<index_t>(random() % static_cast<unsigned>(num_leaves + 1)));
      }
      std::sort(odd.begin(), odd.end());
      check_cuts(even, num_leaves);
      check_cuts(odd, num_leaves);
    }
  }
}

TEST_CASE("cyclic lanes make the same expression") {
  // Round k brings leaves k*N .. k*N+N-1, one per rank; the owner pushes them as the round ends.
  for (index_t num_leaves = 1; num_leaves <= 69; ++num_leaves) {
    for (int num_ranks = 1; num_ranks <= 16; ++num_ranks) {
      Stack owner(num_leaves);
      for (index_t first = 0; first < num_leaves; first += num_ranks) {
        for (const auto& n : fold({first, std::min(first + num_ranks, num_leaves)}, num_leaves)) {
          owner.push(n.range, n.value, plus);
        }
      }
      REQUIRE(owner.nodes().size() == 1);
      REQUIRE(owner.nodes()[0].value == node({0, num_leaves}));
    }
  }
}

TEST_CASE("halving by doubled distance makes the same expression where it is allowed") {
  int num_allowed = 0;
  for (index_t num_leaves = 1; num_leaves <= 69; ++num_leaves) {
    for (int num_ranks = 1; num_ranks <= 16; ++num_ranks) {
      if (!tree_halving_fits(num_ranks, num_leaves)) continue;
      ++num_allowed;
      std::vector<Expression> held;
      for (int rank = 0; rank < num_ranks; ++rank)
        held.push_back(node(part_of(rank, num_ranks, num_leaves)));
      for (int d = 1; d < num_ranks; d *= 2) {
        std::vector<Expression> next(held);
        for (int rank = 0; rank < num_ranks; ++rank) {
          const int low = rank & ~d;
          next[static_cast<std::size_t>(rank)] =
              plus(held[static_cast<std::size_t>(low)], held[static_cast<std::size_t>(low | d)]);
        }
        held = next;
      }
      for (const Expression e : held) REQUIRE(e == node({0, num_leaves}));
    }
  }
  // All multiples of N by a power of two are among them.
  REQUIRE(num_allowed >= 7 + 6 + 5 + 4 - 4);
  for (const int num_ranks : {2, 4, 8, 16}) {
    for (index_t leaves = num_ranks; leaves <= 64; leaves *= 2)
      REQUIRE(tree_halving_fits(num_ranks, leaves));
  }
  REQUIRE_FALSE(tree_halving_fits(4, 12));
  REQUIRE_FALSE(tree_halving_fits(3, 3));
}

TEMPLATE_TEST_CASE("the hostile data shows any other order", "", float, double) {
  const index_t num_leaves = GENERATE(4, 8, 12, 16, 33);
  int sequential = 0, far_first = 0, zero_start = 0, backwards = 0;
  for (index_t i = 0; i < reference::hostile_period; ++i) {
    const TestType tree = reference::hostile_sum<TestType>({0, num_leaves}, i);
    TestType forward_sum = reference::hostile_value<TestType>(0, i);
    TestType backward_sum = reference::hostile_value<TestType>(num_leaves - 1, i);
    for (index_t l = 1; l < num_leaves; ++l) {
      forward_sum = forward_sum + reference::hostile_value<TestType>(l, i);
      backward_sum = backward_sum + reference::hostile_value<TestType>(num_leaves - 1 - l, i);
    }
    sequential += !same_bits(tree, forward_sum);
    backwards += !same_bits(tree, backward_sum);
    zero_start += !same_bits(tree, TestType{0} + tree);
    // Ranks r and r + N/2 first, on N = 4 ranks.
    const auto part = [&](index_t r) {
      return reference::hostile_sum<TestType>(part_of(r, 4, num_leaves), i);
    };
    far_first += !same_bits(tree, (part(0) + part(2)) + (part(1) + part(3)));
  }
  CHECK(sequential > 0);
  CHECK(backwards > 0);
  CHECK(far_first > 0);
  CHECK(zero_start > 0);
}

TEST_CASE("slices are cut at multiples of 16 elements") {
  for (const index_t count : {0, 1, 15, 16, 17, 1000, 4096}) {
    for (const int num_ranks : {1, 2, 3, 5, 16}) {
      const auto cuts = even_cuts(count, num_ranks);
      REQUIRE(static_cast<int>(cuts.size()) == num_ranks + 1);
      REQUIRE(cuts.front() == 0);
      REQUIRE(cuts.back() == count);
      for (int rank = 0; rank < num_ranks; ++rank) {
        const index_t size =
            cuts[static_cast<std::size_t>(rank) + 1] - cuts[static_cast<std::size_t>(rank)];
        REQUIRE(size >= 0);
        REQUIRE(size <= count / num_ranks + 32);
        REQUIRE(cuts[static_cast<std::size_t>(rank)] % 16 *
                    (cuts[static_cast<std::size_t>(rank)] - count) ==
                0);
      }
    }
  }
}

}  // namespace weft
