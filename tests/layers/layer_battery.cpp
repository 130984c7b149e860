#include "tests/layers/layer_battery.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

namespace weft::testing {

namespace {

// f32 against f64: sums of up to 100 terms of both signs, each rounded once (2^-24 = 6e-8), and
// polynomials within 2e-7; relative to the largest element of the tensor. Measured: below 5e-7.
constexpr double bound = 2e-6;

// Every layout, and what else must change no bit.
void check_layouts(const LayerCase& what, index_t shards, const LayerOutcome& base) {
  for (int tp = 1; tp <= static_cast<int>(shards); ++tp) {
    for (const bool sequence_parallel : {false, true}) {
      INFO("tp = " << tp << (sequence_parallel ? ", sequence parallel" : ""));
      const RankGroup group{.shards = shards, .tp = tp, .sequence_parallel = sequence_parallel};
      REQUIRE(difference(run_layer(what, group), base) == "");
    }
  }
  for (const int threads : several_threads()) {
    INFO("threads = " << threads);
    REQUIRE(difference(run_layer(what, {.shards = shards, .threads = threads}), base) == "");
  }
  // Weights may come later than inputs, as long as they come in order.
  LayerCase later = what;
  later.weights_last = true;
  REQUIRE(difference(run_layer(later, {.shards = shards}), base) == "");
  // The first microbatch of a lane begins: nothing of the lane before is left.
  LayerCase second = what;
  second.lane_before = true;
  const int tp = static_cast<int>(std::min<index_t>(2, shards));
  REQUIRE(difference(run_layer(second, {.shards = shards, .tp = tp}), base) == "");
}

}  // namespace

void check_layer(const std::function<LayerCase(index_t shards)>& case_of,
                 const std::function<Oracle(const LayerCase&)>& oracle_of,
                 const std::vector<index_t>& sample_counts) {
  for (const index_t shards : tested_shards()) {
    for (const index_t num_samples : sample_counts) {
      for (const bool hostile : {false, true}) {
        LayerCase what = case_of(shards);
        what.num_samples = num_samples;
        what.hostile = hostile;
        what.seed = static_cast<std::uint64_t>(100 * shards + num_samples);
        INFO(what.name << ", S = " << shards << ", " << num_samples << " samples, seed "
                       << what.seed << (hostile ? ", hostile" : ""));
        const LayerOutcome base = run_layer(what, {.shards = shards});
        if (!hostile) {
          REQUIRE(difference_from_oracle(what, base, oracle_of(what), bound) == "");
        }
        check_layouts(what, shards, base);
      }
    }
  }
}

}  // namespace weft::testing
