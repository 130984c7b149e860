// Against the double oracle: losses and gradient norms of the first 20 steps, with every optimizer,
// with padded last batches and with dropout, on one rank and on a layout of several axes.
//
// Losses and norms, not single parameters: of a transformer's key biases the gradient is 0 but for
// rounding (what all keys have in common does not change a softmax), and AdamW makes whole steps of
// it. Nothing else depends on where they go.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "tests/apps/oracle_run.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// What a run must keep to is 1e-5. f32 gradients are within some 1e-6 of the oracle's, and a loss
// is a mean over 16 samples; measured in twenty steps: losses within 1e-7, norms within 2.6e-7,
// both models. Tighter than what is asked, so that no fault hides in between.
constexpr double bound = 1e-6;

double relative(double got, double expected) { return std::abs(got - expected) / expected; }

// Checks a run against the oracle's, and prints the largest deviations.
void check_equal(const std::string& name, const TrainingRun& run, const OracleRun& truth) {
  double worst_loss = 0.0, worst_norm = 0.0;
  REQUIRE(run.steps.size() == truth.steps.size());
  for (std::size_t i = 0; i < truth.steps.size(); ++i) {
    const StepResult& got = run.steps[i];
    const OracleRun::Step& expected = truth.steps[i];
    INFO("step " << i << ": loss " << got.loss << ", oracle " << expected.loss);
    CHECK(got.num_real == expected.num_real);
    CHECK(relative(got.loss, expected.loss) < bound);
    CHECK(got.learning_rate == Approx(expected.learning_rate).epsilon(1e-14));
    CHECK(relative(got.gradient_norm, expected.gradient_norm) < bound);
    worst_loss = std::max(worst_loss, relative(got.loss, expected.loss));
    worst_norm = std::max(worst_norm, relative(got.gradient_norm, expected.gradient_norm));
  }
  CHECK(run.evaluation.samples == static_cast<index_t>(small_data().split().validation.size()));
  CHECK(relative(run.evaluation.loss, truth.validation_loss) < bound);
  CHECK(run.evaluation.confusion == truth.confusion);
  // Something was learned, else there was little to compare.
  CHECK(run.steps.back().loss < run.steps.front().loss);
  std::cout << "trainer against oracle, " << name << ": largest relative deviation of 20 losses "
            << worst_loss << ", of gradient norms " << worst_norm << ", of the validation loss "
            << relative(run.evaluation.loss, truth.validation_loss) << "\n";
}

// On one rank, then on `layout`. Returns the run on one rank.
TrainingRun check_against_oracle(const std::string& name, const Plan& plan,
                                 const SmallLayout& layout) {
  INFO(plan.model.kind << ", " << name);
  const RunOptions options{.num_steps = plan.num_steps(), .evaluate = true};
  TrainingRun one = train(plan, small_data(), options);
  const OracleRun truth = run_oracle(plan, small_data(), one.initial);
  check_equal(plan.model.kind + ", " + name + ", one rank", one, truth);
  const TrainingRun many = train(on_layout(plan, layout), small_data(), options);
  for (const auto& [parameter, values] : one.initial) {
    INFO(parameter);
    CHECK(bit_difference(many.initial.at(parameter), values) == "");
  }
  check_equal(plan.model.kind + ", " + name + ", " +
                  std::to_string(on_layout(plan, layout).num_ranks()) + " ranks",
              many, truth);
  return one;
}

// S = R = 4, three blocks, 20 steps.
std::vector<Plan> both_models() {
  std::vector<Plan> plans{small_plan(4), small_vit(4)};
  for (Plan& plan : plans) plan.model.layers = 3;
  return plans;
}

}  // namespace

TEST_CASE("twenty steps against the oracle: AdamW with clipping", "[trainer][oracle]") {
  for (Plan plan : both_models()) {
    plan.batch.last = LastBatch::drop;
    plan.optimizer.clip_norm = 0.5;
    const TrainingRun run = check_against_oracle(
        "AdamW", plan, {.tp = 2, .dp = 2, .pp = 2, .zero = 1, .sequence_parallel = true});
    CHECK(run.steps[0].gradient_norm > plan.optimizer.clip_norm);  // the clip is at work
  }
}

TEST_CASE("twenty steps against the oracle: SGD with momentum and a schedule",
          "[trainer][oracle]") {
  for (Plan plan : both_models()) {
    plan.optimizer.kind = "sgd";
    plan.optimizer.momentum = 0.9;
    plan.optimizer.lr = 0.01;
    plan.optimizer.weight_decay = 0.01;
    plan.optimizer.schedule = {.kind = "cosine", .warmup_steps = 4, .final_fraction = 0.1};
    check_against_oracle("SGD", plan, {.tp = 4, .dp = 1, .pp = 3, .schedule = "gpipe"});
  }
}

TEST_CASE("twenty steps against the oracle: a padded last batch in each epoch",
          "[trainer][oracle]") {
  for (const Plan& plan : both_models()) {
    const TrainingRun run =
        check_against_oracle("padded", plan, {.tp = 2, .dp = 3, .pp = 2, .zero = 1});
    // 150 samples: nine batches of 16 and one of 6, twice.
    CHECK(plan.steps_per_epoch() == 10);
    CHECK(run.steps[8].num_real == 16);
    CHECK(run.steps[9].num_real == 6);
    CHECK(run.steps[19].num_real == 6);
    CHECK(run.steps[19].epoch == 1);
  }
}

TEST_CASE("twenty steps against the oracle: dropout, several microbatches a lane",
          "[trainer][oracle]") {
  for (Plan plan : both_models()) {
    plan.model.dropout = 0.1;
    plan.batch.micro = 2;
    REQUIRE(plan.microbatches_per_lane() == 2);
    check_against_oracle("dropout", plan,
                         {.tp = 3, .dp = 2, .pp = 2, .zero = 1, .sequence_parallel = true});
  }
}

TEST_CASE("twenty steps against the oracle: sixteen tokens, four wide heads", "[trainer][oracle]") {
  Plan plan = small_vit(4);
  plan.model.patch = 8;
  plan.model.heads = 4;
  check_against_oracle("16 tokens", plan, {.tp = 2, .dp = 2, .pp = 2, .sequence_parallel = true});
}

TEST_CASE("twenty steps against the oracle: fast mode", "[trainer][oracle]") {
  for (Plan plan : both_models()) {
    plan.numerics.mode = NumericsMode::fast;
    check_against_oracle("fast mode", plan,
                         {.tp = 2, .dp = 2, .pp = 2, .zero = 1, .sequence_parallel = true});
  }
}
