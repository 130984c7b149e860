// Gradients over lanes (EXACT 7.5): on every rank and for every dp, the tree over lanes of each
// lane's sum over its microbatches, on floats for which any other order shows.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "core/reduce_tree.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/data/grad_sync.hpp"
#include "tests/core/float_data.hpp"
#include "tests/oracle/tree_sum.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t token_blocks = 3;
constexpr std::size_t bias_size = 70;

// A matrix with gaps behind its pieces and padded rows, and a vector that is summed by token
// blocks.
void add_parameters(ParameterSet& parameters) {
  parameters.add("w", ShardSpec::cut({10, 7}, 0, 12, 4, {0, 4}), {}, GradientRows::all);
  parameters.add("b", ShardSpec::replicated({bias_size}), {}, GradientRows::token_blocks);
}

bool is_gap(index_t i) { return i < 256 ? i % 64 >= 21 : i - 256 >= index_t{bias_size}; }

// What microbatch m of a lane adds: to the flat gradient, and to the token blocks of "b".
struct Microbatch {
  Floats flat, partials;
  Microbatch(index_t step, index_t lane, index_t m, bool hostile) {
    const auto seed = static_cast<std::uint64_t>(1000 * step + 10 * lane + m);
    flat = hostile ? hostile_floats(384, seed) : random_floats(384, seed);
    partials = hostile ? hostile_floats(token_blocks * bias_size, seed + 7)
                       : random_floats(token_blocks * bias_size, seed + 7);
  }
};

// From the definition: lanes and blocks by the tree, microbatches in sequence; gaps are 0.
Floats expected_gradient(index_t step, index_t num_lanes, index_t per_lane) {
  std::vector<Floats> lanes;
  for (index_t lane = 0; lane < num_lanes; ++lane) {
    Microbatch sum(step, lane, 0, true);
    for (index_t m = 1; m < per_lane; ++m) {
      const Microbatch next(step, lane, m, true);
      for (std::size_t i = 0; i < sum.flat.size(); ++i) sum.flat[i] += next.flat[i];
      for (std::size_t i = 0; i < sum.partials.size(); ++i) sum.partials[i] += next.partials[i];
    }
    for (std::size_t j = 0; j < bias_size; ++j) {
      Floats leaves;
      for (std::size_t b = 0; b < token_blocks; ++b) {
        leaves.push_back(sum.partials[b * bias_size + j]);
      }
      sum.flat[256 + j] = oracle::tree_sum(leaves);
    }
    lanes.push_back(sum.flat);
  }
  Floats result;
  for (index_t i = 0; i < 384; ++i) {
    Floats leaves;
    for (const Floats& lane : lanes) leaves.push_back(lane[static_cast<std::size_t>(i)]);
    result.push_back(is_gap(i) ? 0.0f : oracle::tree_sum(leaves));
  }
  return result;
}

// What the layers do with one microbatch: begin or go on, last layer first, and say at once what is
// ready, since its memory may serve the next parameter. Gaps are not theirs.
void add_microbatch(const ParameterSet& parameters, const Microbatch& data, bool is_first,
                    const std::function<void(const Parameter&, index_t)>& ready) {
  const Parameter& bias = *parameters.all()[1];
  for (std::size_t i = 0; i < data.partials.size(); ++i) {
    float& sum = bias.partials[i / bias_size * static_cast<std::size_t>(bias.partial_stride) +
                               i % bias_size];
    sum = is_first ? data.partials[i] : sum + data.partials[i];
  }
  const Parameter& matrix = *parameters.all()[0];
  float* flat = matrix.gradient;
  for (index_t i = 0; i < 256; ++i) {
    const float value = data.flat[static_cast<std::size_t>(i)];
    if (!is_gap(i)) flat[i] = is_first ? value : flat[i] + value;
  }
  for (index_t s = matrix.spec.owned().begin; s < matrix.spec.owned().end; ++s) ready(matrix, s);
}

// The most bytes of gradients that folding `lanes` takes: a full one for each node before a lane
// and for the lane, but room for the largest parameter alone where a lane of one microbatch merges
// at once.
index_t most_bytes(Range lanes, index_t num_lanes, index_t per_lane) {
  constexpr index_t flat = 384, largest = 256;
  index_t most = 0, before = 0;
  for (index_t lane = lanes.begin; lane < lanes.end; ++lane) {
    const auto after =
        static_cast<index_t>(reduce_tree::maximal_nodes({lanes.begin, lane + 1}, num_lanes).size());
    const bool merges = after <= before;
    most = std::max(most, before * flat + (merges && per_lane == 1 ? largest : flat));
    before = after;
  }
  return most * index_t{sizeof(float)};
}

struct Run {
  index_t num_lanes;
  int dp;
  index_t per_lane;
  Order order = Order::tree;
  bool hostile = true;
};

constexpr index_t num_steps = 2;

// Each rank's gradient of each step.
std::vector<std::vector<Floats>> run(const Run& what) {
  std::vector<std::vector<Floats>> results(static_cast<std::size_t>(what.dp));
  run_ranks(what.dp, [&](Transport& transport) {
    std::vector<int> members(static_cast<std::size_t>(what.dp));
    std::iota(members.begin(), members.end(), 0);
    Context context(1, {.num_token_blocks = token_blocks});
    Communicator dp(transport, nullptr, "dp", 1, members);
    ParameterSet parameters;
    add_parameters(parameters);
    parameters.allocate(context);
    GradSync sync(parameters, dp, what.num_lanes, what.per_lane, what.order);
    const auto held = context.arena.in_use(MemoryKind::gradients);
    for (index_t step = 0; step < num_steps; ++step) {
      for (index_t lane = sync.lanes().begin; lane < sync.lanes().end; ++lane) {
        sync.begin_lane(context, lane);
        for (index_t m = 0; m < what.per_lane; ++m) {
          add_microbatch(parameters, Microbatch(step, lane, m, what.hostile), m == 0,
                         [&](const Parameter& parameter, index_t shard) {
                           if (m + 1 == what.per_lane) sync.ready(context, parameter, shard);
                         });
        }
        sync.end_lane(context);
      }
      sync.finish(context);
      const float* flat = parameters.all()[0]->gradient;
      results[static_cast<std::size_t>(transport.rank())].emplace_back(flat, flat + 384);
      sync.release();
      if (context.arena.in_use(MemoryKind::gradients) != held) {
        throw std::runtime_error("gradients are still held");
      }
    }
    const auto most = static_cast<index_t>(
        context.arena.peak().by_kind[static_cast<std::size_t>(MemoryKind::gradients)] - held);
    if (most != most_bytes(sync.lanes(), what.num_lanes, what.per_lane)) {
      throw std::runtime_error(std::to_string(most) + " bytes of gradients at once");
    }
  });
  return results;
}

}  // namespace

TEST_CASE("the step's gradient does not depend on dp", "[grad_sync]") {
  constexpr index_t counts[] = {1, 2, 3, 4, 5, 6, 8, 12};
  for (const index_t num_lanes : counts) {
    for (const index_t per_lane : {1, 3}) {
      std::vector<Floats> expected;
      for (index_t step = 0; step < num_steps; ++step) {
        expected.push_back(expected_gradient(step, num_lanes, per_lane));
      }
      for (const index_t dp : counts) {
        if (dp > num_lanes) continue;
        INFO("R = " << num_lanes << ", dp = " << dp << ", m = " << per_lane);
        for (const auto& of_rank : run({num_lanes, static_cast<int>(dp), per_lane})) {
          for (std::size_t step = 0; step < expected.size(); ++step) {
            REQUIRE(bit_difference(of_rank[step], expected[step]) == "");
          }
        }
      }
    }
  }
}

TEST_CASE("fast mode: one lane a rank, any order, close to the sum", "[grad_sync]") {
  for (const int dp : {1, 2, 3, 5, 8}) {
    const auto results = run({dp, dp, 1, Order::any, false});
    for (std::size_t i = 0; i < 256; ++i) {
      if (is_gap(static_cast<index_t>(i))) continue;
      double sum = 0.0, magnitude = 0.0;
      for (index_t lane = 0; lane < dp; ++lane) {
        const auto value = static_cast<double>(Microbatch(0, lane, 0, false).flat[i]);
        sum += value;
        magnitude += std::abs(value);
      }
      // dp - 1 additions in some order, each rounded relative to at most the sum of magnitudes.
      for (const auto& of_rank : results) {
        REQUIRE(std::abs(static_cast<double>(of_rank[0][i]) - sum) <= dp * 0x1p-24 * magnitude);
        REQUIRE(bit_difference<float>({of_rank[0][i]}, {results[0][0][i]}) == "");
      }
    }
  }
}
