// The norm of the whole gradient against its prescribed order written down a second time (EXACT
// 3.18), the same bits for every layout.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

#include "core/optimizer.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/data/global_norm.hpp"
#include "parallel/data/grad_sync.hpp"
#include "parallel/mesh.hpp"
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

struct Layout {
  int tp = 1, dp = 1, pp = 1;
  index_t zero = 0;
  index_t bucket_bytes = 5000;
  int threads = 1;
};

// What one rank computes.
double norm_on(Transport& transport, const Layout& layout, index_t shards, std::uint64_t seed) {
  Context context(layout.threads, {.num_pieces = shards, .num_token_blocks = shards});
  Mesh mesh(transport, nullptr, {{"tp", layout.tp}, {"dp", layout.dp}, {"pp", layout.pp}},
            "pp,tp,dp");
  const Tensors tensors;
  ParameterSet parameters;
  const Range stage =
      part_of(mesh.rank("pp"), layout.pp, static_cast<index_t>(tensors.entries.size()));
  const auto entry_of = [&](index_t i) { return tensors.entries[static_cast<std::size_t>(i)]; };
  for (index_t i = stage.begin; i < stage.end; ++i) {
    // Every other one lies elsewhere than it was added.
    parameters.add(entry_of(i).name,
                   tensors.spec(entry_of(i), shards, part_of(mesh.rank("tp"), layout.tp, shards)),
                   {}, i % 2 == 0 ? GradientRows::all : GradientRows::token_blocks);
  }
  parameters.allocate(context);
  const GradSync sync(
      context, parameters, mesh.axis("tp"), mesh.axis("dp"),
      {.num_lanes = layout.dp, .zero = layout.zero, .bucket_bytes = layout.bucket_bytes});
  // What is in pads and gaps must not count, nor what others own.
  Floats flat(static_cast<std::size_t>(parameters.flat_elements()), 1e10f);
  parameters.bind_gradients(flat.data());
  for (index_t i = stage.begin; i < stage.end; ++i) {
    const Parameter& p = *parameters.all()[static_cast<std::size_t>(i - stage.begin)];
    scatter(p.spec, tensors.gradient(entry_of(i), seed), p.gradient);
  }
  Floats owned(flat.size(), 1e10f);
  for (const auto& part : sync.owned().parts())
    std::copy(flat.begin() + part.flat.begin, flat.begin() + part.flat.end,
              owned.begin() + part.flat.begin);
  parameters.bind_gradients(owned.data());
  GlobalNorm norm(context, parameters, sync.shares(), mesh.rank("dp"));
  return norm.of_gradients(context, parameters, mesh.axis("tp"), mesh.axis("dp"), mesh.axis("pp"));
}

// By rank.
std::vector<double> norms(index_t shards, std::uint64_t seed, const Layout& layout) {
  const int num_ranks = layout.tp * layout.dp * layout.pp;
  std::vector<double> results(static_cast<std::size_t>(num_ranks));
  const auto body = [&](Transport& transport) {
    results[static_cast<std::size_t>(transport.rank())] = norm_on(transport, layout, shards, seed);
  };
  if (num_ranks > 1) {
    run_ranks(num_ranks, body);
  } else {
    // On this thread: it may have several of its own.
    const LocalWorld world(1);
    body(*world.make_transport(0));
  }
  return results;
}

}  // namespace

TEST_CASE("the global norm is the prescribed sum, on every rank for every tp", "[global_norm]") {
  for (const index_t shards : {1, 2, 3, 4, 6, 12}) {
    for (const std::uint64_t seed : {1, 2}) {
      const double expected = expected_norm(shards, seed);
      for (int tp = 1; tp <= static_cast<int>(shards); ++tp) {
        INFO("S = " << shards << ", tp = " << tp << ", seed " << seed);
        for (const double norm : norms(shards, seed, {.tp = tp})) {
          REQUIRE(bit_difference<double>({norm}, {expected}) == "");
        }
      }
      for (const int threads : several_threads()) {
        REQUIRE(bit_difference<double>(norms(shards, seed, {.threads = threads}), {expected}) ==
                "");
      }
    }
  }
}

TEST_CASE("the global norm does not depend on dp, ZeRO, buckets or stages", "[global_norm]") {
  for (const index_t shards : {1, 4}) {
    const double expected = expected_norm(shards, 3);
    for (const int tp : {1, 2, 3}) {
      if (tp > shards) continue;
      for (const int dp : {1, 2, 3, 7}) {
        for (const int pp : {1, 2, 3, 5}) {
          for (const index_t zero : {0, 1}) {
            if (tp * dp * pp > 30) continue;
            const index_t bytes = dp == 2 ? 1 : dp == 3 ? 10'000 : 1 << 30;
            INFO("S = " << shards << ", tp = " << tp << ", dp = " << dp << ", pp = " << pp
                        << ", zero " << zero);
            for (const double norm : norms(shards, 3, {tp, dp, pp, zero, bytes})) {
              REQUIRE(bit_difference<double>({norm}, {expected}) == "");
            }
          }
        }
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
    Communicator axis(*transport, nullptr, "alone", 1, {0});
    ParameterSet parameters;
    parameters.add("w", ShardSpec::replicated({3, 5}), {}, GradientRows::all);
    parameters.allocate(context);
    Floats flat(64, 0.0f);
    flat[7] = bad;
    parameters.bind_gradients(flat.data());
    GlobalNorm norm(context, parameters, {everything_of(parameters)}, 0);
    const auto value = [&] { return norm.of_gradients(context, parameters, axis, axis, axis); };
    CHECK(!std::isfinite(value()));
    // And by hand: 3, 4 -> 5.
    flat.assign(64, 0.0f);
    flat[0] = 3.0f;
    flat[14] = -4.0f;
    CHECK(value() == 5.0);
  }
}
