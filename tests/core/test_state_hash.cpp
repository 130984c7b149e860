// The hash of a run's state: sees any change of what it covers, and nothing of the layout.
#include <catch2/catch.hpp>

#include <bit>
#include <functional>
#include <limits>

#include "core/state_hash.hpp"
#include "tests/core/float_data.hpp"
#include "tests/core/shard_values.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// One rank's part of a small state: a matrix with padded rows, one cut along columns, a vector of
// several norm blocks that all hold.
struct State {
  Context context{1, {}};
  ParameterSet parameters;
  std::unique_ptr<Optimizer> optimizer;

  State(index_t shards, index_t tp, index_t rank, const std::string& first_name = "head.weight",
        const FlatRanges* owned_state = nullptr) {
    const Range owned = part_of(rank, tp, shards);
    parameters.add(first_name, ShardSpec::cut({10, 6}, 0, 12, shards, owned),
                   {.uniform_bound = 1.0f}, GradientRows::all);
    parameters.add("down.weight", ShardSpec::cut({300, 24}, 1, 24, shards, owned),
                   {.uniform_bound = 1.0f}, GradientRows::all);
    parameters.add("norm.bias", ShardSpec::replicated({2500}), {.uniform_bound = 1.0f},
                   GradientRows::token_blocks);
    parameters.allocate(context);
    optimizer = make_adamw(context, {}, owned_state ? *owned_state : everything_of(parameters));
  }
  float* value(std::size_t parameter, index_t shard, index_t element) {
    return parameters.all()[parameter]->value_of(shard) + element;
  }
};

Hash128 hash_of_layout(index_t shards, index_t tp,
                       const std::function<void(State&, index_t)>& change = {}) {
  StateHash total;
  for (index_t rank = 0; rank < tp; ++rank) {
    State state(shards, tp, rank);
    if (change) change(state, rank);
    const StateHash hash = hash_state(state.parameters, state.optimizer.get());
    if (rank > 0) {
      REQUIRE(hash.values.replicated == total.values.replicated);
      REQUIRE(hash.states.replicated == total.states.replicated);
    }
    total.values.cut += hash.values.cut;
    total.states.cut += hash.states.cut;
    total.values.replicated = hash.values.replicated;
    total.states.replicated = hash.states.replicated;
  }
  Hash128 sum = total.values.total();
  return sum += total.states.total();
}

Hash128 hash_after(const std::function<void(State&)>& change) {
  return hash_of_layout(4, 1, [&](State& state, index_t) { change(state); });
}

}  // namespace

TEST_CASE("the state's hash is that of any layout", "[state_hash]") {
  const Hash128 expected = hash_of_layout(4, 1);
  for (const index_t tp : {1, 2, 3, 4}) CHECK(hash_of_layout(4, tp) == expected);
  const Hash128 twelve = hash_of_layout(12, 1);
  for (const index_t tp : {2, 5, 12}) CHECK(hash_of_layout(12, tp) == twelve);
  // S is part of the plan: another one cuts other blocks.
  CHECK(twelve != expected);
}

TEST_CASE("the state's hash sees every change", "[state_hash]") {
  const Hash128 before = hash_of_layout(4, 1);
  const auto flip = [](float* x) {
    *x = std::bit_cast<float>(std::bit_cast<std::uint32_t>(*x) ^ 1u);
  };
  CHECK(hash_after([&](State& s) { flip(s.value(0, 0, 0)); }) != before);
  CHECK(hash_after([&](State& s) { flip(s.value(0, 3, 5)); }) != before);  // last row that is none
  CHECK(hash_after([&](State& s) { flip(s.value(1, 2, 1799)); }) != before);
  CHECK(hash_after([&](State& s) { flip(s.value(2, 0, 2499)); }) != before);
  for (const std::size_t state : {std::size_t{0}, std::size_t{1}}) {
    CHECK(hash_after([&](State& s) { flip(s.optimizer->states()[state].data + 3); }) != before);
  }
  // Exchanged shards, blocks of a shard, and moments: each has its place in the hash.
  CHECK(hash_after([](State& s) {
          std::swap_ranges(s.value(1, 0, 0), s.value(1, 0, 0) + 1800, s.value(1, 1, 0));
        }) != before);
  CHECK(hash_after([](State& s) {
          std::swap_ranges(s.value(2, 0, 0), s.value(2, 0, 0) + 1024, s.value(2, 0, 1024));
        }) != before);
  const auto moments = [](std::size_t which) {
    return [which](State& s) { s.optimizer->states()[which].data[0] = 1.0f; };
  };
  CHECK(hash_after(moments(0)) != hash_after(moments(1)));
  // Another name.
  State renamed(4, 1, 0, "tail.weight");
  State usual(4, 1, 0);
  const auto copy_values = [&] {
    std::copy_n(usual.parameters.values(), usual.parameters.flat_elements(),
                renamed.parameters.values());
  };
  copy_values();
  const StateHash renamed_hash = hash_state(renamed.parameters, nullptr);
  const StateHash usual_hash = hash_state(usual.parameters, nullptr);
  CHECK(renamed_hash.values.cut != usual_hash.values.cut);
  CHECK(renamed_hash.values.replicated == usual_hash.values.replicated);
  // Values alone, or with the optimizer's state.
  CHECK(usual_hash.states == StateHash::Sums{});
  const StateHash with_states = hash_state(usual.parameters, usual.optimizer.get());
  CHECK(with_states.values == usual_hash.values);
  CHECK(with_states.states.cut != Hash128{});
}

TEST_CASE("owners of parts of the state add up to the whole", "[state_hash]") {
  const auto fill = [](State& state) {
    for (const auto& part : state.optimizer->owned().parts()) {
      for (index_t i = 0; i < part.flat.size(); ++i) {
        for (std::size_t s = 0; s < 2; ++s) {
          state.optimizer->states()[s].data[part.offset + i] =
              static_cast<float>(part.flat.begin + i) + static_cast<float>(s) * 0.5f;
        }
      }
    }
    return hash_state(state.parameters, state.optimizer.get());
  };
  State all(4, 1, 0);
  const StateHash expected = fill(all);
  // head.weight in 4 blocks of 64; down.weight in 4 of 1800, stored as 1856; then norm.bias.
  const index_t end = all.parameters.flat_elements();
  for (const auto& cuts : {std::vector<index_t>{0, end},
                           {0, 128, end},
                           {0, 256 + 1024, end},
                           {0, 64, 256 + 1856, 256 + 1856 + 1024, end - 512, end}}) {
    StateHash::Sums sum;
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const FlatRanges owned({{cuts[i], cuts[i + 1]}});
      State part(4, 1, 0, "head.weight", &owned);
      const StateHash hash = fill(part);
      CHECK(hash.values == expected.values);
      sum += hash.states;
    }
    CHECK(sum == expected.states);
  }
}

TEST_CASE("pads and gaps are not in the state's hash", "[state_hash]") {
  const Hash128 before = hash_of_layout(4, 1);
  // head.weight [10, 6] in 4 pieces of 3 rows: rows 10 and 11 are pads; 18 of 64 are a block.
  CHECK(hash_after([](State& s) { *s.value(0, 3, 6) = 7.0f; }) == before);
  CHECK(hash_after([](State& s) { *s.value(0, 3, 17) = 7.0f; }) == before);
  CHECK(hash_after([](State& s) { *s.value(0, 0, 18) = 7.0f; }) == before);
}

TEST_CASE("NaN is one value, and zeros are two", "[state_hash]") {
  const auto with = [](float x) { return hash_after([x](State& s) { *s.value(0, 0, 0) = x; }); };
  const float nan_value = std::numeric_limits<float>::quiet_NaN();
  const float other_nan = std::bit_cast<float>(0xffc00123u);
  CHECK(with(nan_value) == with(other_nan));
  CHECK(with(nan_value) != with(0.0f));
  CHECK(with(0.0f) != with(-0.0f));
}

TEST_CASE("128-bit sums carry and do not mind the order", "[hash]") {
  Hash128 a{1, ~0ull};
  a += {2, 1};
  CHECK(a == Hash128{4, 0});
  CHECK(Hash128{0xabc, 1}.text() == "0000000000000abc0000000000000001");
  const char bytes[] = "weft";
  CHECK(hash128(bytes, 4) != hash128(bytes, 4, 1));
  Hash128 forward, backward;
  for (std::uint64_t i = 0; i < 9; ++i) forward += hash128(&i, sizeof i);
  for (std::uint64_t i = 9; i-- > 0;) backward += hash128(&i, sizeof i);
  CHECK(forward == backward);
}
