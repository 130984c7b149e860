// Against the double oracle: losses of the first 20 steps, with every optimizer, with padded last
// batches and with dropout. The oracle gets the trainer's initial weights, the same samples, and
// masks made from global indices alone.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <stdexcept>

#include "tests/apps/training_run.hpp"
#include "tests/core/dropout_mask.hpp"
#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/mlp.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// What a run must keep to is 1e-5. f32 gradients are within 1e-6 of the oracle's, and a loss is a
// mean over 16 samples; measured 6e-8 after twenty steps. Tighter, so that no fault hides in
// between.
constexpr double bound = 1e-6;
constexpr index_t num_steps = 20;

oracle::MlpShape shape_of(const Plan& plan) {
  return {.hidden = static_cast<std::size_t>(plan.model.hidden),
          .layers = static_cast<std::size_t>(plan.model.layers),
          .mlp_ratio = static_cast<std::size_t>(plan.model.mlp_ratio),
          .dropout = plan.model.dropout};
}

oracle::OptimizerSettings settings_of(const Plan& plan) {
  const OptimizerPlan& optimizer = plan.optimizer;
  return {
      .kind = optimizer.kind == "sgd" ? oracle::OptimizerKind::sgd : oracle::OptimizerKind::adamw,
      .lr = optimizer.lr,
      .weight_decay = optimizer.weight_decay,
      .clip_norm = optimizer.clip_norm,
      .momentum = optimizer.momentum,
      .adamw = {optimizer.beta1, optimizer.beta2, optimizer.eps},
      .schedule = optimizer.schedule.kind == "cosine" ? oracle::ScheduleKind::cosine
                                                      : oracle::ScheduleKind::constant,
      .warmup_steps = optimizer.schedule.warmup_steps,
      .total_steps = plan.num_steps(),
      .final_fraction = optimizer.schedule.final_fraction};
}

oracle::OracleMlp model_of(const Plan& plan, const NamedFloats& initial) {
  oracle::NamedMatrices parameters = oracle::zero_parameters(shape_of(plan));
  for (auto& [name, p] : parameters) {
    const Floats& values = initial.at(name);
    if (values.size() != p.size()) throw std::runtime_error(name + ": size");
    p.values.assign(values.begin(), values.end());
  }
  return {shape_of(plan), settings_of(plan), parameters};
}

struct Samples {
  oracle::Matrix x;
  std::vector<int> labels;
  std::vector<bool> is_real;

  explicit Samples(const HostBatch& batch)
      : x(static_cast<std::size_t>(batch.num_rows()), 3072, {batch.x.begin(), batch.x.end()}),
        labels(batch.labels.begin(), batch.labels.end()) {
    for (const float weight : batch.weight) is_real.push_back(weight != 0.0f);
  }
};

std::vector<oracle::Matrix> masks_of(const Plan& plan, index_t step) {
  std::vector<oracle::Matrix> masks;
  for (index_t block = 0; plan.model.dropout > 0.0 && block < plan.model.layers; ++block) {
    masks.push_back(dropout_mask(plan.numerics.seed, step, block, 0, plan.batch.global,
                                 plan.model.hidden, plan.model.dropout));
  }
  return masks;
}

double relative(double got, double expected) { return std::abs(got - expected) / expected; }

// Trains on both, prints and checks the largest deviation. Returns the trainer's run.
TrainingRun check_against_oracle(const std::string& name, const Plan& plan) {
  static const SmallData data;
  const TrainingRun run = train(plan, data, {.num_steps = num_steps, .evaluate = true});
  oracle::OracleMlp model = model_of(plan, run.initial);
  Sampler sampler(data.split().train, plan.batch.global, plan.batch.last, plan.numerics.seed);
  const BatchReader reader(data.images(), Cifar10::Part::training,
                           plan.task.augment ? std::optional(plan.numerics.seed) : std::nullopt);
  INFO(name);
  double worst_loss = 0.0, worst_norm = 0.0;
  HostBatch batch;
  for (index_t step = 0; step < num_steps; ++step) {
    reader.read_into(sampler.indices_of(step), {0, plan.batch.global}, batch);
    const Samples samples(batch);
    const oracle::TrainStep truth = model.train_step(
        samples.x, samples.labels, oracle::mean_weights(samples.is_real), masks_of(plan, step));
    const StepResult& got = run.steps[static_cast<std::size_t>(step)];
    INFO("step " << step << ": loss " << got.loss << ", oracle " << truth.loss);
    CHECK(got.num_real == std::count(samples.is_real.begin(), samples.is_real.end(), true));
    CHECK(relative(got.loss, truth.loss) < bound);
    CHECK(got.learning_rate == Approx(truth.lr).epsilon(1e-14));
    CHECK(relative(got.gradient_norm, truth.gradient_norm) < bound);
    worst_loss = std::max(worst_loss, relative(got.loss, truth.loss));
    worst_norm = std::max(worst_norm, relative(got.gradient_norm, truth.gradient_norm));
  }

  // The validation part in one piece, without augmentation, dropout or padding.
  const BatchReader plain(data.images(), Cifar10::Part::training, std::nullopt);
  const auto count = static_cast<index_t>(data.split().validation.size());
  plain.read_into(EvalSampler(data.split().validation, count).indices_of(0), {0, count}, batch);
  const Samples samples(batch);
  const double truth = oracle::softmax_cross_entropy(model.logits(samples.x), samples.labels,
                                                     oracle::mean_weights(samples.is_real))
                           .loss;
  CHECK(run.evaluation.samples == count);
  CHECK(relative(run.evaluation.loss, truth) < bound);
  std::cout << "trainer against oracle, " << name << ": largest relative deviation of 20 losses "
            << worst_loss << ", of gradient norms " << worst_norm << ", of the validation loss "
            << relative(run.evaluation.loss, truth) << "\n";
  // Something was learned, else there was little to compare.
  CHECK(run.steps.back().loss < run.steps.front().loss);
  return run;
}

}  // namespace

TEST_CASE("twenty steps against the oracle: AdamW with clipping", "[trainer][oracle]") {
  Plan plan = small_plan(4);
  plan.batch.last = LastBatch::drop;
  plan.layout.tp = 2;
  plan.layout.dp = 2;
  const TrainingRun run = check_against_oracle("AdamW", plan);
  CHECK(run.steps[0].gradient_norm > plan.optimizer.clip_norm);  // the clip is at work
}

TEST_CASE("twenty steps against the oracle: SGD with momentum and a schedule",
          "[trainer][oracle]") {
  Plan plan = small_plan(4);
  plan.optimizer.kind = "sgd";
  plan.optimizer.momentum = 0.9;
  plan.optimizer.lr = 0.01;
  plan.optimizer.weight_decay = 0.01;
  plan.optimizer.schedule = {.kind = "cosine", .warmup_steps = 4, .final_fraction = 0.1};
  plan.layout.tp = 4;
  check_against_oracle("SGD", plan);
}

TEST_CASE("twenty steps against the oracle: a padded last batch in each epoch",
          "[trainer][oracle]") {
  Plan plan = small_plan(4);
  plan.layout.dp = 3;
  const TrainingRun run = check_against_oracle("padded", plan);
  // 150 samples: nine batches of 16 and one of 6, twice.
  CHECK(plan.steps_per_epoch() == 10);
  CHECK(run.steps[8].num_real == 16);
  CHECK(run.steps[9].num_real == 6);
  CHECK(run.steps[19].num_real == 6);
  CHECK(run.steps[19].epoch == 1);
}

TEST_CASE("twenty steps against the oracle: dropout, several microbatches a lane",
          "[trainer][oracle]") {
  Plan plan = small_plan(4);
  plan.model.dropout = 0.1;
  plan.batch.micro = 2;
  plan.layout.tp = 2;
  plan.layout.dp = 2;
  REQUIRE(plan.microbatches_per_lane() == 2);
  check_against_oracle("dropout", plan);
}

TEST_CASE("twenty steps against the oracle: fast mode", "[trainer][oracle]") {
  Plan plan = small_plan(4);
  plan.numerics.mode = NumericsMode::fast;
  plan.layout.tp = 2;
  plan.layout.dp = 2;
  check_against_oracle("fast mode", plan);
}
