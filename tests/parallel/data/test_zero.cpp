// ZeRO-1: each dp rank updates its slices and holds the optimizer's state of them alone; values and
// state are, bit for bit, those of one rank that updates everything.
#include <catch2/catch.hpp>

#include <stdexcept>

#include "core/optimizer.hpp"
#include "tests/parallel/data/data_grid.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

enum class Kind { adamw, sgd, sgd_momentum };

std::unique_ptr<Optimizer> make(Kind kind, GridRank& rank) {
  if (kind == Kind::adamw)
    return make_adamw(rank.context, {.weight_decay = 0.1}, rank.sync->owned());
  return make_sgd(rank.context,
                  {.momentum = kind == Kind::sgd_momentum ? 0.9 : 0.0, .weight_decay = 0.1},
                  rank.sync->owned());
}

index_t num_states(Kind kind) { return kind == Kind::adamw ? 2 : kind == Kind::sgd ? 0 : 1; }

// Values, and each state in flat order with NaN where this rank has none.
using Flats = std::vector<Floats>;

Flats after_steps(GridRank& rank, Kind kind) {
  const auto optimizer = make(kind, rank);
  const index_t owned = rank.sync->owned().num_elements();
  if (rank.context.arena.in_use(MemoryKind::optimizer) !=
      static_cast<std::uint64_t>(4 * owned * num_states(kind))) {
    throw std::runtime_error("the optimizer holds other than the state of what is owned");
  }
  for (index_t step = 0; step < 3; ++step) {
    rank.sum_gradients(step);
    optimizer->update(rank.context, rank.parameters,
                      {.step = step, .learning_rate = 0.01, .clip_factor = 0.5});
    rank.sync->publish(rank.context);
    rank.sync->release();
  }
  const auto n = static_cast<std::size_t>(rank.parameters.flat_elements());
  Flats flats{Floats(rank.parameters.values(), rank.parameters.values() + n)};
  for (const auto& state : optimizer->states()) {
    Floats& flat = flats.emplace_back(n, NAN);
    for (const auto& part : optimizer->owned().parts()) {
      std::copy_n(state.data + part.offset, part.flat.size(), flat.begin() + part.flat.begin);
    }
  }
  return flats;
}

}  // namespace

TEST_CASE("ZeRO-1 updates as one rank does", "[zero]") {
  for (const Kind kind : {Kind::adamw, Kind::sgd, Kind::sgd_momentum}) {
    // Hostile gradients reach 1e8 and cancel to nothing: moments of all sizes.
    const auto run_on = [&](int dp, index_t zero, index_t bytes) {
      return results_of_grid<Flats>({.dp = dp, .zero = zero, .bucket_bytes = bytes},
                                    [&](GridRank& rank) { return after_steps(rank, kind); });
    };
    const Flats alone = run_on(1, 0, 5000)[0];
    REQUIRE(alone.size() == static_cast<std::size_t>(1 + num_states(kind)));
    for (const int dp : {1, 2, 3, 4}) {
      for (const index_t zero : {0, 1}) {
        for (const index_t bytes : {1, 5000, 1 << 30}) {
          INFO("kind " << static_cast<int>(kind) << ", dp " << dp << ", zero " << zero
                       << ", buckets of " << bytes);
          std::vector<int> owners(alone[0].size(), 0);
          for (const Flats& of_rank : run_on(dp, zero, bytes)) {
            REQUIRE(bit_difference(of_rank[0], alone[0]) == "");
            for (std::size_t i = 0; i < owners.size() && of_rank.size() > 1; ++i)
              owners[i] += std::isnan(of_rank[1][i]) ? 0 : 1;
            for (std::size_t state = 1; state < of_rank.size(); ++state) {
              for (std::size_t i = 0; i < owners.size(); ++i) {
                if (std::isnan(of_rank[state][i])) continue;
                if (std::bit_cast<std::uint32_t>(of_rank[state][i]) !=
                    std::bit_cast<std::uint32_t>(alone[state][i]))
                  FAIL("state " << state << ", element " << i);
              }
            }
          }
          // Divided, each state is somewhere once; else everywhere.
          const int expected = zero == 1 ? 1 : dp;
          if (num_states(kind) > 0)
            REQUIRE(std::count(owners.begin(), owners.end(), expected) ==
                    static_cast<std::ptrdiff_t>(owners.size()));
        }
      }
    }
  }
}

TEST_CASE("ZeRO-1 divides the optimizer's memory", "[zero]") {
  const auto owned = results_of_grid<index_t>(
      {.dp = 4, .zero = 1}, [](GridRank& rank) { return rank.sync->owned().num_elements(); });
  index_t flat = 0;
  for (const index_t n : owned) flat += n;
  for (const index_t n : owned) CHECK(std::abs(n - flat / 4) < 1500);
}

TEST_CASE("ZeRO-1 sends what a reduce-scatter and an all-gather do", "[zero]") {
  for (const int dp : {2, 4}) {
    const auto sent =
        results_of_grid<index_t>({.dp = dp, .zero = 1, .bucket_bytes = 8192}, [&](GridRank& rank) {
          rank.sum_gradients(0);
          rank.sync->publish(rank.context);
          rank.sync->release();
          const auto bytes = static_cast<index_t>(rank.sync->statistics().bytes_sent);
          const index_t flat = rank.parameters.flat_elements() * 4;
          const index_t mine = rank.sync->owned().num_elements() * 4;
          // Everything but the own slice, P = 1 node, to its owners; the own slice to the others.
          return bytes - (flat - mine) - mine * (dp - 1);
        });
    for (const index_t more : sent) CHECK(more == 0);
  }
}
