// The idealized model against the figures of the course (shared text on the principles of
// distributed training; its section in each case), which its author worked out by hand.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "apps/ideal_model.hpp"

using namespace weft;

namespace {

// Section 4: "data wait 8 ms, forward and backward 72 ms, update 4 ms, 84 ms in all"; on four
// devices "data wait 8 ms, local computing 22 ms, communication 18 ms, update 4 ms". 22 ms are the
// share 72 / 4 and 4 ms more.
IdealModel course_model(double hidden_ms) {
  return {.compute_ms = 72,
          .fixed_ms = 8 + 4,
          .communication_ms = 18,
          .hidden_ms = hidden_ms,
          .split_ms = 22 - 72.0 / 4,
          .batch = 128};
}

}  // namespace

TEST_CASE("busy share of a pipeline: sections 3 and 7", "[ideal]") {
  // "p = 4, m = 4: about 57.1 %; m = 16: about 84.2 %"; "25 % with m = 1".
  CHECK(std::round(1000 * ideal_busy_share(4, 4)) == 571);
  CHECK(std::round(1000 * ideal_busy_share(4, 16)) == 842);
  CHECK(ideal_busy_share(4, 1) == 0.25);
  CHECK(ideal_busy_share(1, 7) == 1.0);
}

TEST_CASE("one device and four, without and with hidden communication: section 4", "[ideal]") {
  const IdealStep one = ideal_step(course_model(0), 1);
  const IdealStep serial = ideal_step(course_model(0), 4);
  // "12 of the 18 ms of communication overlap with the backward pass".
  const IdealStep hidden = ideal_step(course_model(12), 4);
  CHECK(one.step_ms == 84);
  CHECK(serial.step_ms == 52);
  CHECK(hidden.step_ms == 40);
  CHECK(hidden.exposed_ms == 6);
  // "about 1524 samples/s", "about 2462", "3200".
  CHECK(std::round(one.samples_per_s) == 1524);
  CHECK(std::round(serial.samples_per_s) == 2462);
  CHECK(hidden.samples_per_s == 3200);
  // "84/40 = 2.1", "about 1.62".
  CHECK(hidden.speed_up == 2.1);
  CHECK(std::round(100 * serial.speed_up) == 162);
}

TEST_CASE("efficiency, device-seconds and updates: section 5", "[ideal]") {
  const IdealStep one = ideal_step(course_model(12), 1);
  const IdealStep four = ideal_step(course_model(12), 4);
  CHECK(four.efficiency == 0.525);  // "52.5 %"
  CHECK(one.device_s == 0.084);     // "0.084 GPU seconds a step"
  CHECK(four.device_s == 0.160);    // "4 x 0.040 = 0.160"
  CHECK(four.updates == 1);

  // "a global batch from 128 to 512: about a quarter of the updates for as many samples".
  IdealModel weak = course_model(12);
  weak.scaling = Scaling::weak;
  const IdealStep grown = ideal_step(weak, 4);
  CHECK(grown.batch == 512);
  CHECK(grown.updates == 0.25);
  // Each device has the whole work of one: 72 + 4 + 12 + 6 ms.
  CHECK(grown.step_ms == 94);
  CHECK(grown.speed_up == Approx(4 * 84.0 / 94));
}

TEST_CASE("the sliders' model, 72 / N + 12 + communication: section 5", "[ideal]") {
  IdealModel sliders;
  sliders.communication_ms = 0;
  CHECK(ideal_step(sliders, 1).step_ms == 84);
  sliders.communication_ms = 18;
  CHECK(ideal_step(sliders, 4).step_ms == 48);
  CHECK(sliders == IdealModel{});  // what `weft ideal` shows when nothing is said
}

TEST_CASE("a pipeline of four stages: section 7", "[ideal]") {
  // One microbatch: "four devices, but the samples are not worked off four times as fast".
  IdealModel pipeline{.compute_ms = 80, .fixed_ms = 0, .communication_ms = 0, .stages = 4};
  CHECK(ideal_step(pipeline, 4).step_ms == 80);
  CHECK(ideal_step(pipeline, 4).compute_ms == 20);
  CHECK(ideal_step(pipeline, 4).bubble_ms == 60);
  // 16 microbatches: 19 slots where 16 have work.
  pipeline.microbatches = 16;
  CHECK(ideal_step(pipeline, 4).step_ms == Approx(20.0 * 19 / 16));
  CHECK(ideal_step(pipeline, 1).step_ms == 80);  // the baseline has no pipeline
  // Two replicas of four stages share the work out once more.
  CHECK(ideal_step(pipeline, 8).step_ms == Approx(10.0 * 19 / 16));
  pipeline.scaling = Scaling::weak;
  CHECK(ideal_step(pipeline, 8).batch == 256);
  CHECK(ideal_step(pipeline, 8).step_ms == Approx(20.0 * 19 / 16));
}

TEST_CASE("who waits for the slowest: section 3", "[ideal]") {
  // "four participants whose local computing takes 40, 41, 42 and 65 ms".
  const SlowestRank slowest = slowest_of({40, 41, 42, 65});
  CHECK(slowest.rank == 3);
  CHECK(slowest.step_ms == 65);
  CHECK(slowest.waits == std::vector<double>{25, 24, 23, 0});
  CHECK(slowest.mean_ms == 47);
  CHECK(slowest_of({7}).waits == std::vector<double>{0});
  CHECK(slowest_of({5, 9, 9}).rank == 1);
}

TEST_CASE("the parts of a step add up to it, whatever the model", "[ideal]") {
  for (const index_t stages : {1, 2, 4}) {
    for (const double hidden : {0.0, 5.5, 18.0}) {
      for (const index_t devices : {1, 4, 8, 64}) {
        const IdealModel model{.compute_ms = 71.3,
                               .hidden_ms = hidden,
                               .split_ms = 0.7,
                               .stages = stages,
                               .microbatches = 3};
        REQUIRE(fault_of(model, devices).empty());
        const IdealStep step = ideal_step(model, devices);
        CHECK(step.compute_ms + step.bubble_ms + step.fixed_ms + step.exposed_ms == step.step_ms);
        CHECK(step.efficiency <= 1.0);
      }
    }
  }
}

TEST_CASE("what is no model is refused, with what would be one", "[ideal]") {
  const auto fault = [](IdealModel model, index_t devices = 4) { return fault_of(model, devices); };
  CHECK(fault({}).empty());
  CHECK(fault({.hidden_ms = 19}) ==
        "--hidden: expected at most the 18 ms of --communication, a part of which is hidden; found "
        "19. Give --hidden 18, or --communication 19");
  CHECK(fault({.stages = 4}, 6) ==
        "--ranks: expected a multiple of the 4 stages, or 1; found 6. Give 4 or 8");
  CHECK(fault({.stages = 4}, 3) ==
        "--ranks: expected a multiple of the 4 stages, or 1; found 3. Give 4");
  CHECK(fault({.stages = 4}, 1).empty());
  CHECK(fault({.compute_ms = -1}) == "--compute: expected 0 or more; found -1");
  CHECK(fault({.fixed_ms = std::nan("")}).starts_with("--fixed: expected 0 or more"));
  CHECK(fault({.communication_ms = std::numeric_limits<double>::infinity()}) ==
        "--communication: expected 0 or more; found inf");
  CHECK(fault({.split_ms = -1}).starts_with("--split: "));
  CHECK(fault({.batch = 0}) == "--batch: expected 1 or more; found 0");
  CHECK(fault({.stages = 0}) == "--stages: expected 1 or more; found 0");
  CHECK(fault({.microbatches = 0}) == "--microbatches: expected 1 or more; found 0");
  CHECK(fault({}, 0) == "--ranks: expected 1 or more; found 0");
  CHECK(fault({.compute_ms = 0, .fixed_ms = 0}).starts_with("--compute and --fixed: "));
}
