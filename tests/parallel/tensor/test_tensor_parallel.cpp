// The five crossings of the tensor-parallel axis: conjugate pairs, by small integers for which f32
// is exact, and the tree over pieces, by floats for which any other order shows.
#include <catch2/catch.hpp>

#include <stdexcept>

#include "core/shard_spec.hpp"
#include "tests/core/float_data.hpp"
#include "tests/layers/rank_group.hpp"
#include "tests/oracle/tree_sum.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t all_shards[] = {1, 2, 3, 4, 6, 12};

// Calls check(group) for every S and tp <= S.
template <class Check>
void for_each_group(const Check& check) {
  for (const index_t shards : all_shards) {
    for (int tp = 1; tp <= static_cast<int>(shards); ++tp) {
      INFO("S = " << shards << ", tp = " << tp);
      check(RankGroup{.shards = shards, .tp = tp});
    }
  }
}

Floats integers(std::size_t n, std::uint64_t seed) {
  Floats values = random_floats(n, seed, -9.0f, 9.0f);
  for (float& value : values) value = static_cast<float>(static_cast<int>(value));
  return values;
}

double dot(const Floats& a, const Floats& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

// Each rank's result of reduce() over the leaves of all pieces.
std::vector<Floats> reduced(const RankGroup& group, const std::vector<Floats>& leaves) {
  std::vector<Floats> results(static_cast<std::size_t>(group.tp));
  run_group(group, [&](TpRank& rank) {
    const auto n = static_cast<index_t>(leaves[0].size());
    const Tensor sum =
        rank.tp.reduce(rank.context, "x.reduce", Rows::all(1), n, [&](index_t s, float* out) {
          std::copy_n(leaves[static_cast<std::size_t>(s)].data(), n, out);
        });
    results[static_cast<std::size_t>(rank.axis.rank())] = Floats(sum.data(), sum.data() + n);
  });
  return results;
}

std::vector<Floats> hostile_leaves(index_t shards, std::size_t n) {
  std::vector<Floats> leaves;
  for (index_t s = 0; s < shards; ++s) {
    leaves.push_back(hostile_floats(n, static_cast<std::uint64_t>(90 + s)));
    leaves.back()[0] = -0.0f;  // in all of them: a sum that starts from 0 shows
  }
  return leaves;
}

Floats tree_of(const std::vector<Floats>& leaves) {
  Floats sums;
  for (std::size_t i = 0; i < leaves[0].size(); ++i) {
    Floats column;
    for (const Floats& leaf : leaves) column.push_back(leaf[i]);
    sums.push_back(oracle::tree_sum(column));
  }
  return sums;
}

}  // namespace

TEST_CASE("reduce is the tree over pieces, on every rank of every layout", "[tensor_parallel]") {
  // 5 and 3001 elements: small and large messages take different algorithms.
  for (const std::size_t n : {std::size_t{5}, std::size_t{3001}, std::size_t{70000}}) {
    for_each_group([&](const RankGroup& group) {
      if (n > 10000 && group.tp % 4 != 0) return;
      const auto leaves = hostile_leaves(group.shards, n);
      const Floats expected = tree_of(leaves);
      for (const Floats& result : reduced(group, leaves)) {
        REQUIRE(bit_difference(result, expected) == "");
      }
    });
  }
  for (const int threads : several_threads()) {
    const auto leaves = hostile_leaves(12, 3001);
    const auto results = reduced({.shards = 12, .threads = threads}, leaves);
    REQUIRE(bit_difference(results[0], tree_of(leaves)) == "");
  }
}

TEST_CASE("with sequence parallel each rank gets its own rows of the tree, and all of them back",
          "[tensor_parallel]") {
  constexpr index_t n = 7;
  // 1 row: most ranks have none, and one has all. 13: no multiple of anything.
  for (const index_t num_rows : {1, 5, 13, 40, 900}) {
    for_each_group([&](const RankGroup& group) {
      RankGroup cut = group;
      cut.sequence_parallel = true;
      const auto leaves = hostile_leaves(group.shards, static_cast<std::size_t>(num_rows * n));
      const Floats expected = tree_of(leaves);
      std::vector<Range> rows(static_cast<std::size_t>(group.tp));
      std::vector<Floats> own(rows.size()), all(rows.size());
      run_group(cut, [&](TpRank& rank) {
        const auto me = static_cast<std::size_t>(rank.axis.rank());
        const Rows mine = rank.tp.owned_rows(num_rows);
        const Tensor sum =
            rank.tp.reduce(rank.context, "x.reduce", mine, n, [&](index_t s, float* out) {
              std::copy_n(leaves[static_cast<std::size_t>(s)].data(), num_rows * n, out);
            });
        rows[me] = mine.mine;
        own[me] = Floats(sum.data(), sum.data() + mine.mine.size() * n);
        const Tensor whole = rank.tp.gather_rows(rank.context, "x.gather", sum, mine, n);
        all[me] = Floats(whole.data(), whole.data() + num_rows * n);
      });
      index_t next = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        REQUIRE(rows[r].begin == next);
        next = rows[r].end;
        REQUIRE(bit_difference(own[r], Floats(expected.begin() + rows[r].begin * n,
                                              expected.begin() + rows[r].end * n)) == "");
        REQUIRE(bit_difference(all[r], expected) == "");
      }
      REQUIRE(next == num_rows);
    });
  }
}

TEST_CASE("each row is its owner's, of all of them or of a rank's own", "[tensor_parallel]") {
  constexpr index_t n = 3;
  for (const index_t num_rows : {1, 5, 40, 3000}) {
    const Floats values = hostile_floats(static_cast<std::size_t>(num_rows * n), 7);
    Floats expected = values;  // every -0 is +0, as long as a zero was added to it
    for (float& value : expected) value += 0.0f;
    for_each_group([&](const RankGroup& group) {
      for (const bool sequence_parallel : {false, true}) {
        RankGroup cut = group;
        cut.sequence_parallel = sequence_parallel;
        std::vector<Rows> rows(static_cast<std::size_t>(group.tp));
        std::vector<Floats> got(rows.size());
        run_group(cut, [&](TpRank& rank) {
          const auto me = static_cast<std::size_t>(rank.axis.rank());
          rows[me] = rank.tp.owned_rows(num_rows);
          Tensor mine(rank.context.arena, MemoryKind::activations, {num_rows, n});
          for (index_t i = 0; i < num_rows * n; ++i) {
            const bool is_owner = i / n % group.tp == rank.axis.rank();
            mine.data()[i] = is_owner ? expected[static_cast<std::size_t>(i)] : 0.0f;
          }
          const Tensor all =
              rank.tp.select_rows(rank.context, "x.select", rows[me], std::move(mine));
          got[me] = Floats(all.data(), all.data() + all.num_elements());
        });
        for (std::size_t r = 0; r < rows.size(); ++r) {
          const Range held = rows[r].mine;
          REQUIRE(bit_difference(got[r], Floats(expected.begin() + held.begin * n,
                                                expected.begin() + held.end * n)) == "");
        }
      }
    });
  }
}

TEST_CASE("leaves are called once for each owned piece, in order", "[tensor_parallel]") {
  for_each_group([](const RankGroup& group) {
    std::vector<std::vector<index_t>> calls(static_cast<std::size_t>(group.tp));
    run_group(group, [&](TpRank& rank) {
      auto& mine = calls[static_cast<std::size_t>(rank.axis.rank())];
      rank.tp.reduce(rank.context, "x.reduce", Rows::all(1), 1, [&](index_t s, float* out) {
        mine.push_back(s);
        *out = 0.0f;
      });
      if (rank.context.arena.in_use() != 0) throw std::runtime_error("leaves are still held");
    });
    index_t next = 0;
    for (const auto& mine : calls) {
      for (const index_t piece : mine) REQUIRE(piece == next++);
    }
    REQUIRE(next == group.shards);
  });
}

TEST_CASE("reduce and copy are conjugate", "[tensor_parallel]") {
  // <reduce(x), y> = <x, copy(y)>, where copy hands y to every piece.
  for_each_group([](const RankGroup& group) {
    std::vector<Floats> x;
    for (index_t s = 0; s < group.shards; ++s) {
      x.push_back(integers(20, static_cast<std::uint64_t>(s)));
    }
    const Floats y = integers(20, 99);
    double copied = 0.0;
    for (const Floats& piece : x) copied += dot(piece, y);
    for (const Floats& sum : reduced(group, x)) REQUIRE(dot(sum, y) == copied);
  });
}

TEST_CASE("split and gather are conjugate, and inverse", "[tensor_parallel]") {
  constexpr index_t rows = 5, width = 3;
  for_each_group([](const RankGroup& group) {
    const index_t cols = group.shards * width;
    const auto n = static_cast<std::size_t>(rows * cols);
    const Floats x = integers(n, 1), y = integers(n, 2);
    std::vector<Floats> gathered(static_cast<std::size_t>(group.tp));
    std::vector<double> products(static_cast<std::size_t>(group.tp));
    run_group(group, [&](TpRank& rank) {
      const auto me = static_cast<std::size_t>(rank.axis.rank());
      const auto on_device = [&](const Floats& values) {
        Tensor tensor(rank.context.arena, MemoryKind::input, {rows, cols});
        copy_to_device(tensor.raw(), values.data(), tensor.num_bytes());
        return tensor;
      };
      const Tensor split = rank.tp.split_columns(rank.context, on_device(x), rows, cols);
      const ShardSpec spec = ShardSpec::cut({rows, cols}, 1, cols, group.shards, rank.tp.owned());
      // gather() of y's pieces is y; its part of <x, gather(y)> is <split(x), y's pieces>.
      const Range owned = rank.tp.owned();
      Tensor records(rank.context.arena, MemoryKind::workspace, {rows, owned.size(), width});
      double product = 0.0;
      for (index_t s = owned.begin; s < owned.end; ++s) {
        for (index_t row = 0; row < rows; ++row) {
          for (index_t j = 0; j < width; ++j) {
            const float from_split = split.data()[spec.offset(s) + row * width + j];
            const float of_y = y[static_cast<std::size_t>(row * cols + s * width + j)];
            product += static_cast<double>(from_split) * static_cast<double>(of_y);
            records.data()[(row * owned.size() + s - owned.begin) * width + j] = from_split;
          }
        }
      }
      products[me] = product;
      const Tensor all = rank.tp.gather_pieces(rank.context, "x.gather", records, rows, width);
      gathered[me] = Floats(all.data(), all.data() + all.num_elements());
    });
    double product = 0.0;
    for (const double part : products) product += part;
    REQUIRE(product == dot(x, y));
    // Row by row and piece by piece in each: the matrix itself.
    for (const Floats& whole : gathered) REQUIRE(bit_difference(whole, x) == "");
  });
}

TEST_CASE("fast mode sums one piece a rank, in any order", "[tensor_parallel]") {
  for (const int tp : {1, 2, 3, 5}) {
    std::vector<Floats> results(static_cast<std::size_t>(tp));
    run_group({.shards = tp, .tp = tp}, [&](TpRank& rank) {
      TensorParallel fast(rank.axis, tp, Order::any);
      const Tensor sum =
          fast.reduce(rank.context, "x.reduce", Rows::all(1), 100, [](index_t s, float* out) {
            const Floats leaf = integers(100, static_cast<std::uint64_t>(s));
            std::copy_n(leaf.data(), 100, out);
          });
      results[static_cast<std::size_t>(rank.axis.rank())] = Floats(sum.data(), sum.data() + 100);
    });
    Floats expected(100, 0.0f);
    for (int s = 0; s < tp; ++s) {
      const Floats leaf = integers(100, static_cast<std::uint64_t>(s));
      for (std::size_t i = 0; i < 100; ++i) expected[i] += leaf[i];  // exact: small integers
    }
    for (const Floats& result : results) REQUIRE(result == expected);
  }
}
