// The norm of the whole gradient against its prescribed order written down a second time (EXACT
// 3.18), the same bits for every tp.
#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>

#include "parallel/comm/local_transport.hpp"
#include "parallel/data/global_norm.hpp"
#include "tests/core/float_data.hpp"
#include "tests/core/shard_values.hpp"
#include "tests/core/sixteen_sum.hpp"
#include "tests/layers/rank_group.hpp"
#include "tests/oracle/tree_sum.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

struct Tensors {
  struct Entry {
    std::string name;
    Shape shape;
    int dim;  // -1: replicated
  };
  // Several norm blocks in a shard, one, less than one, and pads.
  std::vector<Entry> entries{{"up.weight", {36, 300}, 0},
                             {"norm.bias", {2500}, -1},
                             {"down.weight", {50, 60}, 1},
                             {"head.bias", {10}, 0},
                             {"norm.gain", {3}, -1}};

  ShardSpec spec(const Entry& entry, index_t shards, Range owned) const {
    if (entry.dim < 0) return ShardSpec::replicated(entry.shape);
    const index_t extent = entry.shape[entry.dim];
    return ShardSpec::cut(entry.shape, entry.dim, round_up(extent, shards), shards, owned);
  }
  // A few ones among many squares below 2^-54: f64 keeps those only where they meet each other
  // first, so the order of additions shows.
  Floats gradient(const Entry& entry, std::uint64_t seed) const {
    const auto n = static_cast<std::size_t>(entry.shape.num_elements());
    Floats values = random_floats(n, seed + n, 0.55f * 0x1p-26f, 0.7f * 0x1p-26f);
    for (std::size_t i = seed % 5; i < n; i += 2501) values[i] = -1.0f;
    return values;
  }
};

// Elements [begin, begin + n) of a shard, n <= 1024, are a norm block.
double shard_sum(const Floats& valid) {
  if (valid.empty()) return 0.0;
  std::vector<double> blocks;
  for (std::size_t first = 0; first < valid.size(); first += 1024) {
    std::vector<double> squares;
    for (std::size_t i = first; i < std::min(valid.size(), first + 1024); ++i) {
      squares.push_back(static_cast<double>(valid[i]) * static_cast<double>(valid[i]));
    }
    blocks.push_back(sixteen_sum(squares));
  }
  return oracle::tree_sum(blocks);
}

double expected_norm(index_t shards, std::uint64_t seed) {
  const Tensors tensors;
  std::vector<double> per_parameter;
  for (const auto& entry : tensors.entries) {
    const Floats global = tensors.gradient(entry, seed);
    std::vector<double> per_shard;
    for (index_t s = 0; s < (entry.dim < 0 ? 1 : shards); ++s) {
      Floats valid;
      const Range owned = entry.dim < 0 ? Range{0, 1} : Range{s, s + 1};
      for_each_held(tensors.spec(entry, shards, owned), [&](index_t at, index_t) {
        valid.push_back(global[static_cast<std::size_t>(at)]);
      });
      per_shard.push_back(shard_sum(valid));
    }
    per_parameter.push_back(oracle::tree_sum(per_shard));
  }
  return std::sqrt(oracle::tree_sum(per_parameter));
}

std::vector<double> norms(index_t shards, int tp, std::uint64_t seed, int threads = 1) {
  std::vector<double> results(static_cast<std::size_t>(tp));
  const auto body = [&](Transport& transport) {
    std::vector<int> members(static_cast<std::size_t>(tp));
    std::iota(members.begin(), members.end(), 0);
    Context context(threads, {.num_pieces = shards, .num_token_blocks = shards});
    Communicator axis(transport, nullptr, "tp", 1, members);
    const Tensors tensors;
    ParameterSet parameters;
    for (const auto& entry : tensors.entries) {
      parameters.add(entry.name,
                     tensors.spec(entry, shards, part_of(axis.rank(), axis.size(), shards)), {},
                     GradientRows::all);
    }
    parameters.allocate(context);
    // What is in pads and gaps must not count.
    Floats flat(static_cast<std::size_t>(parameters.flat_elements()), 1e10f);
    parameters.bind_gradients(flat.data());
    for (std::size_t i = 0; i < tensors.entries.size(); ++i) {
      const Parameter& p = *parameters.all()[i];
      scatter(p.spec, tensors.gradient(tensors.entries[i], seed), p.gradient);
    }
    GlobalNorm norm(context, parameters);
    results[static_cast<std::size_t>(axis.rank())] = norm.of_gradients(context, parameters, axis);
  };
  if (tp > 1) {
    run_ranks(tp, body);
  } else {
    // On this thread: it may have several of its own.
    const LocalWorld world(1);
    body(*world.make_transport(0));
  }
  return results;
}

}  // namespace

TEST_CASE("the global norm is the prescribed sum, on every rank of every layout", "[global_norm]") {
  for (const index_t shards : {1, 2, 3, 4, 6, 12}) {
    for (const std::uint64_t seed : {1, 2}) {
      const double expected = expected_norm(shards, seed);
      for (int tp = 1; tp <= static_cast<int>(shards); ++tp) {
        INFO("S = " << shards << ", tp = " << tp << ", seed " << seed);
        for (const double norm : norms(shards, tp, seed)) {
          REQUIRE(bit_difference<double>({norm}, {expected}) == "");
        }
      }
      for (const int threads : several_threads()) {
        REQUIRE(bit_difference<double>(norms(shards, 1, seed, threads), {expected}) == "");
      }
    }
  }
}

TEST_CASE("the order of the norm shows in its bits", "[global_norm]") {
  // Else the test above would pass whatever the order. Other S: other blocks and trees.
  int differ = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    differ += expected_norm(1, seed) != expected_norm(4, seed) ? 1 : 0;
  }
  CHECK(differ >= 15);
}

TEST_CASE("a norm of what is not finite is not finite", "[global_norm]") {
  for (const float bad : {NAN, INFINITY}) {
    Context context(1, {});
    const LocalWorld world(1);
    const auto transport = world.make_transport(0);
    Communicator axis(*transport, nullptr, "tp", 1, {0});
    ParameterSet parameters;
    parameters.add("w", ShardSpec::replicated({3, 5}), {}, GradientRows::all);
    parameters.allocate(context);
    Floats flat(64, 0.0f);
    flat[7] = bad;
    parameters.bind_gradients(flat.data());
    GlobalNorm norm(context, parameters);
    CHECK(!std::isfinite(norm.of_gradients(context, parameters, axis)));
    // And by hand: 3, 4 -> 5.
    flat.assign(64, 0.0f);
    flat[0] = 3.0f;
    flat[14] = -4.0f;
    CHECK(norm.of_gradients(context, parameters, axis) == 5.0);
  }
}
