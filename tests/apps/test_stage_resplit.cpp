// Stages that are split again while a run goes on: the bits of a run that never was, on every kind
// of layout; and which split measured times ask for.
#include <catch2/catch.hpp>

#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>

#include "apps/layout_json.hpp"
#include "apps/stage_resplit.hpp"
#include "tests/apps/resume_run.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

using Blocks = std::vector<index_t>;

constexpr index_t num_steps = 9;

const ResumeData& data() {
  static const ResumeData small;
  return small;
}

Plan of_blocks(Plan plan, index_t layers) {
  plan.model.layers = layers;
  plan.model.dropout = 0.1;
  plan.run.steps = num_steps;
  return plan;
}

// [3, 1] after 2 steps and so on, on the layout; compared with one rank that does nothing of it.
void require_same_bits(const Plan& plan, const TrainingData& samples, const SmallLayout& layout,
                       const std::map<index_t, Blocks>& splits) {
  INFO(plan.model.kind << ", tp " << layout.tp << ", dp " << layout.dp << ", pp " << layout.pp
                       << ", zero " << layout.zero << ", async " << plan.checkpoint.async);
  const TemporaryFolder alone_folder, folder;
  const PartResult alone =
      run_part(plan, samples, {.run_folder = alone_folder.path(), .until = num_steps});
  std::mutex mutex;
  std::map<index_t, Blocks> seen;  // by steps done, of every rank alike
  const auto look = [&](Trainer& trainer) {
    const std::lock_guard lock(mutex);
    seen[trainer.steps_done()] = blocks_of_stages(trainer.plan());
  };
  const PartResult split = run_part(
      on_layout(plan, layout), samples,
      {.run_folder = folder.path(), .until = num_steps, .after_step = look, .splits = splits});
  CHECK(split.error.empty());
  CHECK(split.state_hash == alone.state_hash);
  CHECK(split.loss_hash == alone.loss_hash);
  for (const auto& [step, blocks] : splits) CHECK(seen.at(step + 1) == blocks);
}

pipeline::StageCost cost(double fixed, double block) {
  return {.fixed = {fixed, fixed}, .block = {block, block}};
}

// A ViT of 6 blocks on 2 stages; 8 microbatches of 16 in one lane.
Plan choice_plan() {
  Plan plan = small_vit(4);
  plan.model.layers = 6;
  plan.layout.pp = 2;
  plan.numerics.lanes = 1;
  plan.batch.micro = 16;
  plan.batch.global = 128;
  plan.layout.measures_stages = true;
  return plan;
}

std::string event_of(const Plan& plan, const Blocks& blocks) {
  nlohmann::ordered_json layout = layout_json(plan);
  layout.erase("stages");
  return nlohmann::ordered_json{{"stages_split", {{"after", blocks}, {"layout", layout}}}}.dump() +
         "\n";
}

}  // namespace

TEST_CASE("stages split again while a run goes on change no bit", "[stages]") {
  const std::map<index_t, Blocks> two = {{2, {3, 1}}, {5, {1, 3}}, {8, {2, 2}}};
  for (const SmallLayout& layout :
       {SmallLayout{.pp = 2}, SmallLayout{.tp = 2, .pp = 2, .sequence_parallel = true},
        SmallLayout{.dp = 2, .pp = 2, .zero = 1, .schedule = "gpipe"},
        SmallLayout{.tp = 2, .dp = 2, .pp = 2, .zero = 1}}) {
    require_same_bits(of_blocks(small_vit(4), 4), data(), layout, two);
  }
  require_same_bits(of_blocks(small_plan(4), 4), data(), {.pp = 2}, two);
  const std::map<index_t, Blocks> three = {{1, {1, 1, 3}}, {4, {3, 1, 1}}};
  require_same_bits(of_blocks(small_gpt(4), 5), small_text(), {.dp = 2, .pp = 3, .zero = 1}, three);
  require_same_bits(of_blocks(small_text_encoder(4), 5), small_news(), {.tp = 2, .pp = 3}, three);
}

TEST_CASE("so do splits between saves that go on beside the steps", "[stages]") {
  Plan plan = of_blocks(small_vit(4), 4);
  plan.checkpoint.every_steps = 2;
  plan.checkpoint.async = true;
  // After step 3 a save of step 2 may be under way; step 4 has its own.
  require_same_bits(plan, data(), {.dp = 2, .pp = 2, .zero = 1}, {{3, {3, 1}}, {4, {1, 3}}});
}

TEST_CASE("a rank's own time lands in what its blocks do not explain", "[stages]") {
  Plan plan = of_blocks(small_vit(4), 4);
  plan.layout.pp = 2;
  constexpr double delay_ms = 40.0;
  constexpr index_t microbatches = 4;  // small_vit's
  std::mutex mutex;
  std::vector<pipeline::StageCost> costs(2);
  on_ranks(plan, data(), [&](Trainer& trainer) {
    const int stage = trainer.mesh().rank("pp");
    if (stage == 1) trainer.slow_down(std::chrono::milliseconds(40));
    StageClock clock(trainer.context(), trainer.model(), 2);
    trainer.time_stage(&clock);
    for (int i = 0; i < 5; ++i) {
      trainer.step();
      clock.end_step();
    }
    clock.end_step();  // nothing since the last one
    trainer.time_stage(nullptr);
    trainer.step();
    clock.end_step();
    const std::lock_guard lock(mutex);
    CHECK(clock.num_steps() == 5);
    costs[static_cast<std::size_t>(stage)] = clock.cost();
  });
  // The delay comes before the first forward pass of each step.
  CHECK(costs[1].fixed.forward >= delay_ms / microbatches);
  CHECK(costs[1].fixed.backward < delay_ms / microbatches);
  CHECK(costs[1].block.both() < delay_ms / microbatches);
  CHECK(costs[0].fixed.both() < delay_ms / microbatches);
  for (const pipeline::StageCost& one : costs) {
    CHECK(one.block.forward > 0.0);
    CHECK(one.block.backward > 0.0);
  }
}

TEST_CASE("measured times ask for the split that evens them out", "[stages]") {
  const Plan plan = choice_plan();
  // The first stage has work for two blocks more, of 1 ms forward and 1 ms back.
  const SplitChoice choice = choose_split(plan, {3, 3}, {cost(2, 1), cost(0, 1)}, 100.0);
  CHECK(choice.before == Blocks{3, 3});
  CHECK(choice.after == Blocks{2, 4});
  // 1f1b, 5 and 3 ms: F0 0-5, F1 5-10, and B0 not before the other stage's F0 5-8, B0 8-11; from
  // there the first stage works until B6 is over, and waits 1 ms once more for B7.
  CHECK(choice.pipeline_before_ms == 8 * 10 + 1 + 1);
  CHECK(choice.pipeline_after_ms == (8 + 1) * 8);
  CHECK(choice.predicted_step_ms() == 90.0);
  CHECK(choice.predicted_gain() == Approx(0.1));
  // Nothing to gain: as it is, whatever split it was.
  const SplitChoice even = choose_split(plan, {3, 3}, {cost(0, 1), cost(0, 1)}, 60.0);
  CHECK(even.after == Blocks{3, 3});
  CHECK(even.predicted_gain() == 0.0);
  const SplitChoice good = choose_split(plan, {4, 2}, {cost(0, 1), cost(0, 2)}, 60.0);
  CHECK(good.after == Blocks{4, 2});
  CHECK(good.predicted_gain() == 0.0);
}

TEST_CASE("a resume finds the split that the run had come to", "[stages]") {
  const Plan plan = choice_plan();
  const std::string first = event_of(plan, {2, 4}), second = event_of(plan, {1, 5});
  const std::string other = R"({"resumed_from_step":4,"layout":{"tp":1}})"
                            "\n";
  CHECK(split_of_events("", plan).empty());
  CHECK(split_of_events(other, plan).empty());
  CHECK(split_of_events(first, plan) == Blocks{2, 4});
  CHECK(split_of_events(other + first + second + other, plan) == Blocks{1, 5});
  // A line that a kill cut short, and ones that cannot be of this run.
  CHECK(split_of_events(first + second.substr(0, second.size() / 2), plan) == Blocks{2, 4});
  CHECK(split_of_events(first + "{\"stages_split\":7}\n[1]\nnull\n", plan) == Blocks{2, 4});
  CHECK(split_of_events(
            first + event_of(plan, {3, 4}) + event_of(plan, {6, 0}) + event_of(plan, {2, 2, 2}),
            plan) == Blocks{2, 4});
  // On another layout other ranks have the stages.
  Plan wider = plan;
  wider.layout.tp = 2;
  CHECK(split_of_events(first, wider).empty());
  CHECK(split_of_events(event_of(wider, {5, 1}) + first, plan) == Blocks{2, 4});
  Plan longer = plan;
  longer.layout.pp = 3;
  CHECK(split_of_events(first, longer).empty());
}
