// Initial values are a function of name, seed and global index: against the oracle's Philox, on
// every cut, by any number of threads. Also what ParameterSet does with them and with gradients.
#include <catch2/catch.hpp>

#include <cmath>

#include "core/hash.hpp"
#include "core/kernels/initialize.hpp"
#include "tests/core/float_data.hpp"
#include "tests/core/shard_values.hpp"
#include "tests/oracle/philox.hpp"
#include "tests/oracle/tree_sum.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr std::uint64_t seed = 0x0000abcd12345678ull;

float expected_value(const std::string& name, std::size_t index, float bound) {
  const std::uint64_t hash = hash64(name);
  const oracle::PhiloxKey key{static_cast<std::uint32_t>(seed),
                              static_cast<std::uint32_t>(seed >> 32) | 4u << 24};
  const auto words = oracle::philox4x32_10(
      {static_cast<std::uint32_t>(index / 4), 0, static_cast<std::uint32_t>(hash),
       static_cast<std::uint32_t>(hash >> 32)},
      key);
  return (2.0f * (static_cast<float>(words[index % 4] >> 8) * 0x1p-24f) - 1.0f) * bound;
}

}  // namespace

TEST_CASE("the hash of names is XXH64", "[hash]") {
  // Published values of xxHash (seed 0).
  CHECK(hash64("") == 0xef46db3751d8e999ull);
  CHECK(hash64("a") == 0xd24ec4f1a98c6e5bull);
}

TEST_CASE("initial values do not depend on the cut or on threads", "[kernels]") {
  // 5 x 14 in 12 pieces: ranges that begin at every place of a group of four.
  for (const int dim : {0, 1}) {
    for (const index_t shards : {1, 2, 3, 4, 6, 12}) {
      for (index_t tp = 1; tp <= shards; ++tp) {
        for (const int threads : {1, 2, 3, 4}) {
          if (threads > 1 && tp > 1) continue;
          Floats global(70, 0.0f);
          for (index_t rank = 0; rank < tp; ++rank) {
            Context context(threads, {.seed = seed});
            ParameterSet parameters;
            const Shape shape{5, 14};
            parameters.add("stem.weight",
                           ShardSpec::cut(shape, dim, round_up(shape[dim], shards), shards,
                                          part_of(rank, tp, shards)),
                           {.uniform_bound = 0.25f}, GradientRows::all);
            parameters.allocate(context);
            const Parameter& p = *parameters.all()[0];
            gather(p.spec, p.value, global);
            // Pads and gaps are 0.
            Floats rest(p.value, p.value + p.spec.local_elements());
            for_each_held(p.spec, [&](index_t, index_t local) {
              rest[static_cast<std::size_t>(local)] = 0.0f;
            });
            REQUIRE(bit_difference(rest, Floats(rest.size(), 0.0f)) == "");
          }
          INFO("dim " << dim << ", S = " << shards << ", tp = " << tp << ", threads " << threads);
          for (std::size_t i = 0; i < 70; ++i) {
            REQUIRE(global[i] == expected_value("stem.weight", i, 0.25f));
          }
        }
      }
    }
  }
}

TEST_CASE("initial values follow the name, and constants are constant", "[kernels]") {
  Context context(1, {.seed = seed});
  ParameterSet parameters;
  const auto spec = ShardSpec::replicated({100});
  parameters.add("a", spec, {.uniform_bound = 0.5f}, GradientRows::all);
  parameters.add("b", spec, {.uniform_bound = 0.5f}, GradientRows::all);
  parameters.add("gain", spec, {.constant = 1.0f}, GradientRows::token_blocks);
  parameters.allocate(context);
  const auto values = [&](std::size_t i) {
    const float* from = parameters.all()[i]->value;
    return Floats(from, from + 100);
  };
  CHECK(bit_difference(values(0), values(1)) != "");
  for (const float value : values(0)) CHECK(std::abs(value) <= 0.5f);
  CHECK(bit_difference(values(2), Floats(100, 1.0f)) == "");
  CHECK(parameters.flat_elements() == 3 * 128);
  CHECK(parameters.held_elements() == 300);
  CHECK(parameters.all()[2]->offset == 256);
  CHECK(parameters.all()[2]->partials != nullptr);
  CHECK(parameters.all()[0]->partials == nullptr);
}

TEST_CASE("gaps of a gradient are cleared, and partial sums are folded by the tree",
          "[parameter]") {
  constexpr index_t num_blocks = 6;
  Context context(1, {.num_token_blocks = num_blocks});
  ParameterSet parameters;
  parameters.add("w", ShardSpec::cut({10, 7}, 0, 12, 4, {1, 4}), {}, GradientRows::all);
  parameters.add("b", ShardSpec::replicated({70}), {}, GradientRows::token_blocks);
  parameters.allocate(context);
  Floats flat(static_cast<std::size_t>(parameters.flat_elements()), 5.0f);
  REQUIRE(flat.size() == 3 * 64 + 128);
  parameters.clear_gaps(flat.data());
  for (std::size_t i = 0; i < flat.size(); ++i) {
    // Blocks of 3 x 7 on multiples of 64, pads among them (a layer writes those); then 70 of 128.
    const bool is_block = i < 192 ? i % 64 < 21 : i - 192 < 70;
    if (flat[i] != (is_block ? 5.0f : 0.0f)) FAIL("element " << i);
  }

  parameters.bind_gradients(flat.data());
  const Parameter& bias = *parameters.all()[1];
  const Floats partials = hostile_floats(num_blocks * 70, 3);
  CHECK(parameters.token_block_range() == Range{192, 320});
  REQUIRE(bias.partial_stride == 128);
  for (std::size_t b = 0; b < num_blocks; ++b)
    std::copy_n(partials.begin() + static_cast<std::ptrdiff_t>(b * 70), 70,
                bias.partials + b * 128);
  parameters.fold_partials(context);
  for (std::size_t j = 0; j < 70; ++j) {
    Floats leaves;
    for (std::size_t b = 0; b < num_blocks; ++b) leaves.push_back(partials[b * 70 + j]);
    REQUIRE(bit_difference<float>({bias.gradient[j]}, {oracle::tree_sum(leaves)}) == "");
  }
  // Others are left alone.
  CHECK(flat[0] == 5.0f);
}
