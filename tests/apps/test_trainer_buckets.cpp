// Training in length buckets: one set of bits on every layout though steps differ in their number
// of tokens, and the losses of an oracle that pads every text to its full length.
#include <catch2/catch.hpp>

#include <cmath>
#include <iostream>
#include <mutex>
#include <set>

#include "tests/apps/oracle_run.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

#ifdef WEFT_SANITIZED
constexpr bool last_alone = true;
constexpr index_t num_oracle_steps = 5;
#else
constexpr bool last_alone = false;
constexpr index_t num_oracle_steps = 20;
#endif

// Three blocks; an epoch of 150 samples is four batches of 36 in one window, and a padded one of 6.
Plan bucketed_plan(index_t shards, index_t lanes, index_t microbatches_per_lane) {
  Plan plan = small_bucketed_encoder(shards);
  plan.numerics.lanes = lanes;
  plan.batch.global = 36;
  plan.batch.micro = 36 / (lanes * microbatches_per_lane);
  plan.model.layers = 3;
  plan.model.dropout = 0.1;
  plan.optimizer.clip_norm = 0.25;
  plan.run.steps = 5;
  return plan;
}

// An epoch and an evaluation.
TrainingRun epoch_of(const Plan& plan) {
  return train(plan, data_of(plan), {.num_steps = 5, .evaluate = true});
}

double relative(double got, double expected) { return std::abs(got - expected) / expected; }

}  // namespace

TEST_CASE("steps of several lengths have one set of bits on every layout", "[buckets]") {
  const Plan plan = bucketed_plan(4, 4, 3);
  const TrainingRun base = epoch_of(plan);
  REQUIRE(base.steps.back().num_real == 6);
  REQUIRE(base.steps[0].gradient_norm > plan.optimizer.clip_norm);
  std::vector<SmallLayout> layouts = {
      {.tp = 2},
      {.tp = 3, .sequence_parallel = true},
      {.tp = 4},
      {.tp = 4, .sequence_parallel = true},
      {.dp = 2},
      {.dp = 3, .zero = 1},
      {.dp = 4, .zero = 1},
      {.pp = 2},
      {.pp = 2, .schedule = "gpipe"},
      {.pp = 3},
      {.pp = 3, .schedule = "gpipe"},
      {.tp = 2, .dp = 2},
      {.tp = 2, .dp = 2, .zero = 1, .sequence_parallel = true},
      {.tp = 2, .pp = 2},
      {.tp = 2, .pp = 2, .sequence_parallel = true},
      {.tp = 3, .pp = 3, .schedule = "gpipe"},
      {.tp = 3, .pp = 2, .sequence_parallel = true},
      {.dp = 2, .pp = 2, .zero = 1},
      {.dp = 4, .pp = 2, .zero = 1, .schedule = "gpipe"},
      {.dp = 3, .pp = 3},
      {.tp = 2, .dp = 2, .pp = 2},
      {.tp = 2, .dp = 2, .pp = 3, .zero = 1, .sequence_parallel = true, .schedule = "gpipe"}};
  if (last_alone) layouts.erase(layouts.begin(), layouts.end() - 1);
  for (const SmallLayout& layout : layouts) {
    const Plan here = on_layout(plan, layout);
    INFO(text_of(here));
    check_equal(epoch_of(here), base);
  }
  Plan threads = on_layout(plan, {.tp = 2, .pp = 2});
  threads.layout.threads = 3;
  INFO(text_of(threads));
  check_equal(epoch_of(threads), base);
}

// 2 rows of 3 to 7 tokens in 12 token blocks: some ranks have no row of a short step.
TEST_CASE("steps of several lengths, shards and lanes that differ", "[buckets]") {
  for (const Plan& plan : {bucketed_plan(12, 6, 3), bucketed_plan(3, 12, 1)}) {
    const TrainingRun base = epoch_of(plan);
    for (const SmallLayout& layout :
         {SmallLayout{3, 2, 2, 1, true}, SmallLayout{1, 3, 3, 0}, SmallLayout{2, 3, 1, 1, true}}) {
      const Plan here = on_layout(plan, layout);
      INFO(text_of(here));
      check_equal(epoch_of(here), base);
    }
  }
}

TEST_CASE("all ranks of a step have the length that its longest text asks for", "[buckets]") {
  // Told by each rank, the later stages' among them; the texts' own lengths are the test data's
  // formula, 1 + (5 i + 2) mod 7.
  const Plan plan = on_layout(bucketed_plan(4, 4, 3), {.tp = 2, .dp = 2, .pp = 2});
  std::mutex mutex;
  std::vector<std::set<index_t>> tokens(5);
  std::vector<index_t> longest(5, 0);
  on_ranks(plan, data_of(plan), [&](Trainer& trainer) {
    for (std::size_t step = 0; step < 5; ++step) {
      trainer.step();
      const HostBatch& batch = trainer.batch();
      const std::lock_guard lock(mutex);
      tokens[step].insert(batch.tokens_per_sample);
      for (const std::int64_t sample : batch.dataset_index)
        longest[step] = std::max(longest[step], index_t{1 + (5 * sample + 2) % 7});
    }
  });
  std::set<index_t> seen;
  for (std::size_t step = 0; step < 5; ++step) {
    const index_t expected = longest[step] <= 3 ? 3 : longest[step] <= 5 ? 5 : 7;
    CHECK(tokens[step] == std::set<index_t>{expected});
    seen.insert(expected);
  }
  CHECK(seen == std::set<index_t>{3, 5, 7});
}

TEST_CASE("steps in buckets against an oracle that pads", "[buckets][oracle]") {
  // Bounds as for the models of text in test_trainer_tied.cpp.
  constexpr double bound = 1e-6, norm_bound = 3e-6;
  Plan plan = bucketed_plan(4, 4, 3);
  plan.run.steps = num_oracle_steps;
  Plan fast = plan;
  fast.numerics.mode = NumericsMode::fast;
  const SmallLayout spread{.tp = 2, .dp = 2, .pp = 2, .zero = 1, .sequence_parallel = true};
  for (const Plan& here : {plan, on_layout(plan, spread), on_layout(fast, spread)}) {
    const TrainingRun run =
        train(here, data_of(here), {.num_steps = here.num_steps(), .evaluate = true});
    const OracleRun truth = run_oracle(here, data_of(here), run.initial);
    double worst_loss = 0.0, worst_norm = 0.0;
    for (std::size_t i = 0; i < truth.steps.size(); ++i) {
      const StepResult& got = run.steps[i];
      const OracleRun::Step& expected = truth.steps[i];
      INFO(text_of(here) << ", step " << i << ": loss " << got.loss << ", oracle " << expected.loss
                         << "; norm " << got.gradient_norm << ", oracle "
                         << expected.gradient_norm);
      CHECK(got.num_real == expected.num_real);
      CHECK(relative(got.loss, expected.loss) < bound);
      CHECK(relative(got.gradient_norm, expected.gradient_norm) < norm_bound);
      worst_loss = std::max(worst_loss, relative(got.loss, expected.loss));
      worst_norm = std::max(worst_norm, relative(got.gradient_norm, expected.gradient_norm));
    }
    CHECK(relative(run.evaluation.loss, truth.validation_loss) < bound);
    std::cout << "length buckets, " << text_of(here) << ": largest relative deviation of losses "
              << worst_loss << ", of gradient norms " << worst_norm << "\n";
  }
}

TEST_CASE("an evaluation does not depend on buckets", "[buckets]") {
  // The same state judged by a plan with and one without them; no step between.
  Plan with = bucketed_plan(4, 4, 3), without = with;
  without.task.length_buckets.clear();
  const RunOptions options{.num_steps = 0, .evaluate = true};
  const TrainingRun a = train(with, small_bucketed_news(), options);
  const TrainingRun b = train(without, small_news(), options);
  CHECK(bit_difference<double>({a.evaluation.loss}, {b.evaluation.loss}) == "");
  CHECK(a.evaluation.confusion == b.evaluation.confusion);
  // Steps do: another order of samples.
  CHECK(epoch_of(with).loss_hash != epoch_of(without).loss_hash);
}
