// Gradients over lanes (EXACT 7.5): on every rank and for every dp, bucket size and ZeRO stage, the
// tree over lanes of each lane's sum over its microbatches, on floats for which any other order
// shows.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <tuple>

#include "core/reduce_tree.hpp"
#include "tests/core/shard_values.hpp"
#include "tests/parallel/data/data_grid.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t all_bytes [[maybe_unused]] = index_t{1} << 40;
#ifdef WEFT_SANITIZED
// The whole matrix takes minutes there, and shows no other faults of memory and no other races.
constexpr index_t counts[] = {1, 2, 3, 5, 8};
constexpr index_t bucket_sizes[] = {5000};
#else
constexpr index_t counts[] = {1, 2, 3, 4, 5, 6, 8, 12};
constexpr index_t bucket_sizes[] = {1024, 5000, all_bytes};
#endif
constexpr index_t num_steps = 2;

// The most bytes of gradients that folding `lanes` takes: a full one for each node before a lane
// and for the lane, but room for the largest parameter alone where a lane of one microbatch merges
// at once. Of a tied parameter's second use one for each node and for the lane.
index_t most_bytes(const GridRank& rank) {
  const Range lanes = rank.sync->lanes();
  const index_t flat = rank.parameters.flat_elements();
  index_t most = 0, before = 0;
  for (index_t lane = lanes.begin; lane < lanes.end; ++lane) {
    const auto after = static_cast<index_t>(
        reduce_tree::maximal_nodes({lanes.begin, lane + 1}, rank.run.lanes).size());
    const bool shares = after <= before && rank.run.per_lane == 1;
    most = std::max(most, before * flat + (shares ? rank.parameters.shared_elements() : flat) +
                              (before + 1) * rank.copies.flat_elements());
    before = after;
  }
  return most * index_t{sizeof(float)};
}

void expect(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message);
}

// Steps of one grid; what differs from `expected`, by rank.
std::vector<std::string> differences(const GridRun& run, const std::vector<NamedFloats>& expected) {
  return results_of_grid<std::string>(run, [&](GridRank& rank) {
    const Arena& arena = rank.context.arena;
    const auto held = arena.in_use(MemoryKind::gradients);
    rank.dp().verify_calls(run.shuffle != 0);
    std::string difference;
    for (index_t step = 0; step < num_steps; ++step) {
      rank.sum_gradients(step);
      if (difference.empty())
        difference = gradient_difference(rank, expected[static_cast<std::size_t>(step)]);
      rank.sync->release();
      expect(arena.in_use(MemoryKind::gradients) == held, "gradients are still held");
    }
    const auto peak = arena.peak().by_kind[static_cast<std::size_t>(MemoryKind::gradients)];
    expect(static_cast<index_t>(peak - held) == most_bytes(rank),
           std::to_string(peak - held) + " bytes of gradients at once");
    return difference;
  });
}

// The largest difference of an owned gradient from `expected`.
double deviation(const GridRank& rank, const NamedFloats& expected) {
  double largest = 0.0;
  for (const auto& p : rank.parameters.all()) {
    Floats local(static_cast<std::size_t>(p->spec.local_elements()), 0.0f);
    scatter(p->spec, expected.at(p->name), local.data());
    rank.sync->owned().for_each_in(
        {p->offset, p->offset + p->spec.local_elements()}, [&](Range flat, index_t) {
          for (index_t i = flat.begin - p->offset; i < flat.end - p->offset; ++i) {
            const auto sum = static_cast<double>(local[static_cast<std::size_t>(i)]);
            largest = std::max(largest, std::abs(static_cast<double>(p->gradient[i]) - sum));
          }
        });
  }
  return largest;
}

void check(const GridRun& run) {
  // What is expected does not depend on the layout.
  static std::map<std::tuple<index_t, index_t, index_t, bool>, std::vector<NamedFloats>> expected;
  auto& of_plan = expected[{run.shards, run.lanes, run.per_lane, run.tied}];
  for (index_t step = 0; of_plan.size() < num_steps; ++step)
    of_plan.push_back(expected_gradients(run, step));
  INFO(run.text());
  for (const std::string& difference : differences(run, of_plan)) REQUIRE(difference == "");
}

}  // namespace

TEST_CASE("the step's gradient does not depend on dp, ZeRO or buckets", "[grad_sync]") {
  for (const index_t lanes : counts) {
    for (const index_t dp : counts) {
      if (dp > lanes) continue;
      for (const index_t per_lane : {1, 3}) {
        for (const index_t zero : {0, 1}) {
          for (const index_t bytes : bucket_sizes) {
            // Many ranks with many messages take long where they share a few cores.
            if (dp >= 8 && bytes == 1024) continue;
            check({.lanes = lanes,
                   .per_lane = per_lane,
                   .dp = static_cast<int>(dp),
                   .zero = zero,
                   .bucket_bytes = bytes});
          }
        }
      }
    }
  }
}

TEST_CASE("pieces may become ready in any order, another one on each rank", "[grad_sync]") {
  for (const int dp : {2, 3, 4}) {
    for (const std::uint64_t shuffle : {1, 2, 3}) {
      for (const index_t zero : {0, 1}) {
        for (const index_t per_lane : {1, 2}) {
          check({.lanes = 6,
                 .per_lane = per_lane,
                 .dp = dp,
                 .zero = zero,
                 .bucket_bytes = 5000,
                 .shuffle = shuffle});
        }
      }
    }
  }
}

// EXACT 3.11: a gradient for each use, over microbatches, lanes and dp; then one addition.
TEST_CASE("the gradient of what two stages use is that of both uses, in any stages",
          "[grad_sync]") {
  CaseFilter filter;
  for (const int pp : {1, 2, 3}) {
    for (const int tp : {1, 2, 3}) {
      for (const int dp : {1, 2, 3, 4}) {
        if (tp == 3 && dp == 4) continue;
        for (const index_t per_lane : {1, 2}) {
          for (const index_t zero : {0, 1}) {
            if (!filter.takes_next()) continue;
            check({.lanes = 5,
                   .per_lane = per_lane,
                   .tp = tp,
                   .dp = dp,
                   .pp = pp,
                   .zero = zero,
                   .bucket_bytes = dp == 2 ? 1027 : 5000,
                   .tied = true,
                   .shuffle = static_cast<std::uint64_t>(dp == 3 ? 1 : 0)});
          }
        }
      }
    }
  }
  check({.lanes = 12, .dp = 5, .pp = 2, .zero = 1, .bucket_bytes = all_bytes, .tied = true});
}

TEST_CASE("token blocks divided over tp give the sums of all together", "[grad_sync]") {
  CaseFilter filter;
  for (const index_t shards : {4, 6, 8}) {
    for (const int tp : {1, 2, 3, 4}) {
      for (const int dp : {1, 2}) {
        for (const bool sequence_parallel : {false, true}) {
          for (const index_t per_lane : {1, 2}) {
            if (!filter.takes_next()) continue;
            check({.shards = shards,
                   .lanes = 3,
                   .per_lane = per_lane,
                   .tp = tp,
                   .dp = dp,
                   .zero = dp - 1,
                   .sequence_parallel = sequence_parallel});
          }
        }
      }
    }
  }
}

TEST_CASE("token blocks of all parameters take one message a lane", "[grad_sync]") {
  run_grid({.lanes = 2, .tp = 2, .sequence_parallel = true}, [](GridRank& rank) {
    rank.sum_gradients(0);
    // Two blocks a rank are one node of norm.gain and norm.bias with their gaps, 1152 + 128
    // elements: half of it to the other rank to be summed, half of the sum back.
    const std::uint64_t per_lane = (1152 + 128) * sizeof(float);
    expect(rank.tp().bytes_sent() == 2 * per_lane,
           std::to_string(rank.tp().bytes_sent()) + " bytes sent over tp");
    rank.sync->release();
  });
}

TEST_CASE("fast mode: one lane and one token block a rank, any order, close to the sum",
          "[grad_sync]") {
  for (const int dp : {1, 2, 3, 5}) {
    for (const index_t zero : {0, 1}) {
      for (const int tp : {1, 2}) {
        const GridRun run{.shards = tp,
                          .lanes = dp,
                          .order = Order::any,
                          .hostile = false,
                          .tp = tp,
                          .dp = dp,
                          .zero = zero,
                          .sequence_parallel = tp > 1};
        const NamedFloats expected = expected_gradients(run, 0);
        INFO(run.text());
        const auto worst = results_of_grid<double>(run, [&](GridRank& rank) {
          rank.sum_gradients(0);
          const double largest = deviation(rank, expected);
          rank.sync->release();
          return largest;
        });
        // Two orders of n - 1 additions, each rounded relative to a sum of at most n.
        const int n = dp * tp;
        for (const double difference : worst) REQUIRE(difference <= 2 * n * n * 0x1p-24);
      }
    }
  }
}
