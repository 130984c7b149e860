// Sums: each against its order written down a second time, on floats for which any other order
// gives other bits (EXACT 7.2), and whole range = one by one (EXACT 7.3).
#include <catch2/catch.hpp>

#include <cmath>

#include "core/kernels/reduce.hpp"
#include "core/reduce_tree.hpp"
#include "tests/core/kernel_sweep.hpp"
#include "tests/core/sixteen_sum.hpp"
#include "tests/oracle/tree_sum.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

template <class Real>
std::vector<Real> as(const Floats& values) {
  return {values.begin(), values.end()};
}

template <class Real>
Real engine_sum(const std::vector<Real>& terms) {
  return kernels::sum_of<Real>(static_cast<index_t>(terms.size()),
                               [&](index_t i) { return terms[static_cast<std::size_t>(i)]; });
}

Floats sequential_rows(const Floats& x, Range rows, std::size_t n) {
  Floats sums(n, 0.0f);
  for (index_t row = rows.begin; row < rows.end; ++row) {
    for (std::size_t j = 0; j < n; ++j) {
      const float value = x[static_cast<std::size_t>(row) * n + j];
      sums[j] = row == rows.begin ? value : sums[j] + value;
    }
  }
  return sums;
}

Floats columns_of(const Floats& x, std::size_t num_rows, std::size_t row_length, std::size_t begin,
                  std::size_t n) {
  Floats out;
  for (std::size_t row = 0; row < num_rows; ++row) {
    for (std::size_t j = 0; j < n; ++j) out.push_back(x[row * row_length + begin + j]);
  }
  return out;
}

}  // namespace

TEST_CASE("sum_of adds in 16-accumulator form", "[reduce]") {
  int other_orders_differ = 0;
  for (std::size_t n = 0; n <= 200; ++n) {
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const Floats terms = hostile_floats(n, 1000 * n + seed);
      const float expected = sixteen_sum(terms);
      INFO("n = " << n << ", seed = " << 1000 * n + seed);
      REQUIRE(bit_difference<float>({engine_sum<float>(terms)}, {expected}) == "");
      const auto wide = as<double>(terms);
      REQUIRE(bit_difference<double>({engine_sum<double>(wide)}, {sixteen_sum(wide)}) == "");
      float in_order = 0.0f;
      for (const float term : terms) in_order += term;
      other_orders_differ += in_order != expected ? 1 : 0;
    }
  }
  CHECK(other_orders_differ > 300);  // the data can tell orders apart
}

TEST_CASE("sum_of by hand", "[reduce]") {
  CHECK(engine_sum<float>({}) == 0.0f);
  CHECK(engine_sum<float>({3.5f}) == 3.5f);
  // 1 meets its 17 tiny ones in the order 16, 8, 4, 2, 1: those in the same accumulator first.
  Floats terms(17, 0.0f);
  terms[0] = 1.0f;
  terms[16] = 0x1p-24f;  // lost on 1
  terms[8] = 0x1p-24f;   // lost on 1
  CHECK(engine_sum<float>(terms) == 1.0f);
  terms[0] = 0.0f;
  terms[1] = 1.0f;  // now the tiny ones meet each other first
  CHECK(engine_sum<float>(terms) == 1.0f + 0x1p-23f);
}

TEST_CASE("rows are summed in sequence and begin with the first", "[reduce]") {
  for (const int threads : {1, 2, 3, 4}) {
    Context context(threads, {});
    for (const std::size_t n :
         {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{65}, std::size_t{200}}) {
      for (const index_t rows : {0, 1, 2, 13, 40}) {
        const auto size = static_cast<std::size_t>(rows) * n;
        const Floats x = hostile_floats(size, n + size);
        Floats sums(n, NAN);  // must not be read where nothing is accumulated
        kernels::sum_rows(context, x.data(), rows, static_cast<index_t>(n), sums.data(), false);
        const Floats expected = sequential_rows(x, {0, rows}, n);
        REQUIRE(bit_difference(sums, expected) == "");

        // The chain goes on: as if the rows of both came in one.
        const Floats more = hostile_floats(size, n + size + 1);
        kernels::sum_rows(context, more.data(), rows, static_cast<index_t>(n), sums.data(), true);
        Floats both = x;
        both.insert(both.end(), more.begin(), more.end());
        REQUIRE(bit_difference(
                    sums, rows > 0 ? sequential_rows(both, {0, 2 * rows}, n) : expected) == "");
      }
    }
  }
}

TEST_CASE("rows of -0 stay -0", "[reduce]") {
  Context context(1, {});
  const Floats x(5 * 3, -0.0f);
  Floats sums(3, NAN);
  kernels::sum_rows(context, x.data(), 5, 3, sums.data(), false);
  CHECK(bit_difference(sums, Floats(3, -0.0f)) == "");
  kernels::sum_rows(context, x.data(), 5, 3, sums.data(), true);
  CHECK(bit_difference(sums, Floats(3, -0.0f)) == "");
  Floats leaves = x, out(3, NAN);
  kernels::tree_fold_rows(context, leaves.data(), 5, 3, out.data());
  CHECK(bit_difference(out, Floats(3, -0.0f)) == "");
}

TEST_CASE("token blocks are the range rule over rows; empty ones are 0", "[reduce]") {
  constexpr std::size_t n = 70;
  for (const int threads : {1, 3}) {
    for (const index_t rows : {0, 1, 3, 7, 12, 25}) {
      for (const index_t blocks : {1, 2, 3, 4, 6, 12}) {
        Context context(threads, {.num_token_blocks = blocks});
        const Floats x = hostile_floats(static_cast<std::size_t>(rows) * n, 77);
        Floats sums(static_cast<std::size_t>(blocks) * n, NAN), expected;
        kernels::sum_token_blocks(context, x.data(), {0, rows}, rows, n, sums.data(), n, false);
        for (index_t b = 0; b < blocks; ++b) {
          // floor(b T / S), written out.
          const Floats block = sequential_rows(x, {b * rows / blocks, (b + 1) * rows / blocks}, n);
          expected.insert(expected.end(), block.begin(), block.end());
        }
        INFO(rows << " rows in " << blocks << " blocks");
        REQUIRE(bit_difference(sums, expected) == "");
        // An empty block adds nothing to what is there, not even +0 to -0.
        Floats kept(expected.size(), -0.0f);
        const Floats zeros(static_cast<std::size_t>(rows) * n, -0.0f);
        kernels::sum_token_blocks(context, zeros.data(), {0, rows}, rows, n, kept.data(), n, true);
        REQUIRE(bit_difference(kept, Floats(expected.size(), -0.0f)) == "");
      }
    }
  }
}

TEST_CASE("a rank sums the token blocks that it owns, with room between the sums", "[reduce]") {
  constexpr std::size_t n = 70;
  constexpr index_t rows = 25, blocks = 6, stride = 128;
  const Floats x = hostile_floats(static_cast<std::size_t>(rows) * n, 78);
  Context context(1, {.num_token_blocks = blocks, .token_blocks = {2, 5}});
  const Range mine{2 * rows / blocks, 5 * rows / blocks};
  Floats sums(3 * stride, 7.0f), expected(3 * stride, 7.0f);
  kernels::sum_token_blocks(context, x.data() + static_cast<std::size_t>(mine.begin) * n, mine,
                            rows, n, sums.data(), stride, false);
  for (index_t b = 2; b < 5; ++b) {
    const Floats block = sequential_rows(x, {b * rows / blocks, (b + 1) * rows / blocks}, n);
    std::copy(block.begin(), block.end(), expected.begin() + (b - 2) * stride);
  }
  CHECK(bit_difference(sums, expected) == "");
}

TEST_CASE("tree_fold_rows is the tree", "[reduce]") {
  int other_order_differs = 0;
  for (std::size_t rows = 1; rows <= 40; ++rows) {
    constexpr std::size_t n = 37;
    const Floats x = hostile_floats(rows * n, rows);
    Floats expected;
    for (std::size_t j = 0; j < n; ++j) {
      const Floats leaves = columns_of(x, rows, n, j, 1);
      expected.push_back(oracle::tree_sum(leaves));
      float in_order = leaves[0];
      for (std::size_t i = 1; i < rows; ++i) in_order += leaves[i];
      other_order_differs += in_order != expected.back() ? 1 : 0;
    }
    for (const int threads : {1, 2, 3, 4}) {
      Context context(threads, {});
      Floats used = x, out(n, NAN);
      kernels::tree_fold_rows(context, used.data(), static_cast<index_t>(rows), n, out.data());
      INFO(rows << " rows, " << threads << " threads");
      REQUIRE(bit_difference(out, expected) == "");
    }
  }
  CHECK(other_order_differs > 200);
}

TEST_CASE("merges_of are the nodes that push merges with, innermost first", "[reduce_tree]") {
  using Stack = reduce_tree::Stack<index_t>;  // a node's value: its first leaf
  for (index_t num_leaves = 1; num_leaves <= 17; ++num_leaves) {
    for (index_t first = 0; first < num_leaves; ++first) {
      Stack pushed(num_leaves), booked(num_leaves);
      for (index_t leaf = first; leaf < num_leaves; ++leaf) {
        std::vector<index_t> expected;
        std::vector<index_t> told;
        for (const Stack::Node* node : booked.merges_of({leaf, leaf + 1}))
          told.push_back(node->value);
        pushed.push({leaf, leaf + 1}, leaf, [&](index_t left, index_t) {
          expected.push_back(left);
          return left;
        });
        booked.push_merged({leaf, leaf + 1}, leaf);
        INFO(num_leaves << " leaves from " << first << ", leaf " << leaf);
        REQUIRE(told == expected);
        REQUIRE(booked.nodes().size() == pushed.nodes().size());
        for (std::size_t i = 0; i < pushed.nodes().size(); ++i) {
          REQUIRE(booked.nodes()[i].range == pushed.nodes()[i].range);
          REQUIRE(booked.nodes()[i].value == pushed.nodes()[i].value);
        }
      }
    }
  }
}

TEST_CASE("whole range = one by one: sums over rows", "[kernels]") {
  constexpr std::size_t rows = 11, n = sweep_items;
  const Floats x = hostile_floats(rows * n, 31);
  const auto with_columns = [&](const auto& kernel, index_t width) {
    return [&, kernel, width](Context& context, index_t begin, index_t count) {
      const auto first = static_cast<std::size_t>(begin), size = static_cast<std::size_t>(count);
      Floats in = columns_of(x, rows, n, first, size);
      Floats out(static_cast<std::size_t>(width) * size);
      kernel(context, in, out, count);
      // Item by item: all blocks of a column together.
      return columns_of(out, 1, out.size(), 0, out.size());
    };
  };
  check_sweep("sum_rows", 1,
              with_columns(
                  [](Context& context, Floats& in, Floats& out, index_t count) {
                    kernels::sum_rows(context, in.data(), rows, count, out.data(), false);
                  },
                  1));
  check_sweep("tree_fold_rows", 1,
              with_columns(
                  [](Context& context, Floats& in, Floats& out, index_t count) {
                    kernels::tree_fold_rows(context, in.data(), rows, count, out.data());
                  },
                  1));
  check_sweep("sum_token_blocks", 4, [&](Context& context, index_t begin, index_t count) {
    context.numerics = {.num_token_blocks = 4};
    const auto size = static_cast<std::size_t>(count);
    const Floats in = columns_of(x, rows, n, static_cast<std::size_t>(begin), size);
    Floats blocks(4 * size), out;
    kernels::sum_token_blocks(context, in.data(), {0, rows}, rows, count, blocks.data(), count,
                              false);
    for (std::size_t j = 0; j < size; ++j) {
      for (std::size_t b = 0; b < 4; ++b) out.push_back(blocks[b * size + j]);
    }
    return out;
  });
  // One row after the other, in 16 accumulators each.
  check_sweep("sum_of", 1, [&](Context& context, index_t begin, index_t count) {
    Floats out(static_cast<std::size_t>(count));
    const float* from = x.data() + begin;
    float* to = out.data();
    context.device.parallel_for("test/sum_of", count, [=](index_t i) {
      to[i] = kernels::sum_of<float>(200, [=](index_t j) { return from[i + j]; });
    });
    return out;
  });
}
