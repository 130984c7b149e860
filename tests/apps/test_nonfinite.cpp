// A step whose loss or gradient is not finite: which number is named as the first, alike on every
// layout and as plain arithmetic on the samples says; and what is left of a step that is skipped.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "apps/agreement.hpp"
#include "tests/apps/oracle_run.hpp"
#include "tests/apps/poison.hpp"

using namespace weft;
using namespace weft::testing;
using Catch::Contains;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

const std::vector<SmallLayout>& layouts() {
  static const std::vector<SmallLayout> all{
      {1, 1},
      {2, 2, 1, 1, true},
      {4, 1},
      {1, 4, 1, 1},
      {1, 3},
      {3, 1, 2, 0, true},
      {1, 2, 2, 1, false, "gpipe"},
      {2, 2, 2, 1, true},
  };
  return all;
}

std::string text_of(const SmallLayout& layout) {
  return "tp " + std::to_string(layout.tp) + ", dp " + std::to_string(layout.dp) + ", pp " +
         std::to_string(layout.pp);
}

// What the run says that ends in a step which is not finite.
std::string error_of(const Plan& plan, const RunOptions& options) {
  try {
    train(plan, small_data(), options);
  } catch (const AgreedError& error) {
    return error.code() == ExitCode::failed ? error.what() : "wrong code";
  }
  return "no error";
}

// Without the rank, which is the layout's.
std::string place_in(const std::string& error) {
  const std::string begin = "not finite: ";
  const auto at = error.find(begin);
  return at == std::string::npos
             ? error
             : error.substr(at + begin.size(), error.find(", on rank ") - at - begin.size());
}

HostBatch first_batch(const Plan& plan) {
  Sampler sampler(small_data().split().train, plan.batch.global, plan.batch.last,
                  plan.numerics.seed);
  const BatchReader reader(small_data().samples(), plan.numerics.seed, {});
  HostBatch batch;
  reader.read_into(sampler.indices_of(0), {0, plan.batch.global}, batch);
  return batch;
}

// A feature whose largest value of all the batch's samples is in `row`, and by how much the next
// one falls short.
struct Extreme {
  index_t feature = -1;
  float most = 0.0f, second = 0.0f;
};
Extreme extreme_in(const HostBatch& batch, index_t row) {
  Extreme best;
  for (index_t j = 0; j < 3072; ++j) {
    float most = 0.0f, second = 0.0f;
    for (index_t r = 0; r < batch.num_rows(); ++r) {
      const float x = std::abs(batch.features[static_cast<std::size_t>(r * 3072 + j)]);
      if (r == row) {
        most = x;
      } else {
        second = std::max(second, x);
      }
    }
    if (most > 1.1f && most - second > best.most - best.second) best = {j, most, second};
  }
  return best;
}

}  // namespace

TEST_CASE("the first activation that is not finite is named, with its samples", "[nonfinite]") {
  // One weight of the stem is so large that its product with one sample's feature alone overflows.
  const Plan plan = small_plan(4);
  const HostBatch batch = first_batch(plan);
  for (const index_t row : {9, 14}) {
    const Extreme extreme = extreme_in(batch, row);
    REQUIRE(extreme.feature >= 0);
    REQUIRE(extreme.most - extreme.second > 0.05f);
    const float weight =
        std::numeric_limits<float>::max() / (0.5f * (extreme.most + extreme.second));
    const index_t microbatch = row / plan.batch.micro;  // 4 lanes of one microbatch
    std::string images;
    for (index_t r = 4 * microbatch; r < 4 * microbatch + 4; ++r) {
      images += (images.empty() ? "" : ", ") +
                std::to_string(batch.dataset_index[static_cast<std::size_t>(r)]);
    }
    const std::string expected =
        "the activation after stem, in microbatch " + std::to_string(microbatch) + " (samples " +
        std::to_string(4 * microbatch) + " to " + std::to_string(4 * microbatch + 3) +
        " of the batch, numbers " + images + " of the data set)";
    for (const SmallLayout& layout : layouts()) {
      Poison poison("stem.weight", extreme.feature, weight);
      const std::string error =
          error_of(on_layout(plan, layout),
                   {.num_steps = 1, .before = [&](Trainer& trainer) { poison.put(trainer); }});
      INFO(text_of(layout) << ": " << error);
      CHECK(place_in(error) == expected);
      index_t dp = 0;
      while (part_of(dp, layout.dp, 4).end <= microbatch) ++dp;
      CHECK_THAT(error, Contains("dp " + std::to_string(dp) + ", pp 0)"));
      CHECK_THAT(error, Contains("step 1: ") && Contains("Stopped before the update"));
    }
  }
}

TEST_CASE("a gradient that is not finite is named where activations and losses are",
          "[nonfinite]") {
  // All weights and biases 0: the residual stream is 0, a layer norm's scale 1 / sqrt(1e-5) = 316,
  // every class has probability 0.1. One weight W of the head, at class c and feature j, then gives
  // dx_j = 316 (0.1 - 1) W / 16 (1 - 1 / 48) behind the final norm in rows of class c, and a ninth
  // of that in others: the first overflows from W = 1.96e37 on; the others leave room for the
  // stem's gradient, a sum of four of them times pixels.
  const Plan plan = small_plan(4);
  const HostBatch batch = first_batch(plan);
  // A class that the first microbatch does not have.
  std::int32_t chosen = 0;
  index_t row = 0;
  for (; chosen < 10 && row < 4; ++chosen) {
    row = std::find(batch.labels.begin(), batch.labels.end(), chosen) - batch.labels.begin();
    if (row >= 4 && row < 16) break;
  }
  REQUIRE((row >= 4 && row < 16));
  const std::string microbatch = std::to_string(row / 4);
  for (const SmallLayout& layout : layouts()) {
    Poison poison("head.weight", 48 * chosen + 5, 2e37f);
    const std::string error = error_of(on_layout(plan, layout),
                                       {.num_steps = 1, .before = [&](Trainer& trainer) {
                                          for (const auto& p : trainer.parameters().all()) {
                                            if (!p->name.ends_with(".gain"))
                                              std::fill_n(p->value, p->spec.local_elements(), 0.0f);
                                          }
                                          poison.put(trainer);
                                        }});
    INFO(text_of(layout) << ": " << error);
    CHECK_THAT(place_in(error), Contains("the gradient of the input of final_norm, in microbatch " +
                                         microbatch + " (samples "));
    CHECK_THAT(error, Contains("the loss is 2.302585"));
  }
}

TEST_CASE("a parameter that is not finite itself is named before all it spoils", "[nonfinite]") {
  for (const Plan& plan : {small_plan(4), small_vit(4)}) {
    for (const SmallLayout& layout : layouts()) {
      const bool is_vit = plan.is_vit();
      Poison poison(is_vit ? "block.1.qkv.weight" : "block.1.down.weight", 49, infinity);
      const std::string error =
          error_of(on_layout(plan, layout), {.num_steps = 2, .before_step = [&](Trainer& trainer) {
                                               if (trainer.steps_done() == 1) poison.put(trainer);
                                             }});
      INFO(text_of(layout) << ": " << error);
      CHECK(place_in(error) == std::string("the parameter block.1.") + (is_vit ? "qkv" : "down") +
                                   ".weight itself, before the step");
      CHECK_THAT(error, Contains("step 2: ") && Contains("pp " + std::to_string(layout.pp - 1)));
    }
  }
}

TEST_CASE("whatever breaks first, every layout names the same", "[nonfinite]") {
  // Learning rates that are too large by less and more.
  index_t num_errors = 0;
  for (Plan plan : {small_plan(4), small_vit(4)}) {
    plan.optimizer.kind = "sgd";
    plan.optimizer.clip_norm = 0.0;
    plan.optimizer.weight_decay = 0.0;
    plan.batch.global *= 2;  // two microbatches a lane
    for (const double lr : {1e6, 1e10, 1e15, 1e18, 1e20, 1e25, 1e37}) {
      plan.optimizer.lr = lr;
      std::string expected;
      for (const SmallLayout& layout : {layouts()[0], layouts()[1], layouts()[5], layouts()[6]}) {
        const std::string error = error_of(on_layout(plan, layout), {.num_steps = 6});
        INFO(plan.model.kind << ", lr " << lr << ", " << text_of(layout) << ": " << error);
        // The step and both figures, too.
        const std::string said = error.substr(0, error.find(", on rank "));
        if (expected.empty()) expected = said;
        CHECK(said == expected);
      }
      if (expected == "no error") continue;
      ++num_errors;
      CHECK_THAT(expected, !Contains("done again is finite"));
    }
  }
  CHECK(num_errors >= 6);
}

TEST_CASE("a skipped step leaves the state and goes on alike on every layout", "[nonfinite]") {
  for (Plan plan : {small_plan(4), small_vit(4)}) {
    plan.integrity.on_nonfinite = "skip";
    plan.model.dropout = 0.1;
    Hash128 state, losses;
    for (const SmallLayout& layout : layouts()) {
      INFO(plan.model.kind << ", " << text_of(layout));
      Poison poison("head.weight", 7, infinity);
      std::map<int, Hash128> before;
      std::mutex mutex;
      const TrainingRun run =
          train(on_layout(plan, layout), small_data(),
                {.num_steps = 6, .before_step = [&](Trainer& trainer) {
                   if (trainer.steps_done() == 2) {
                     const Hash128 hash = trainer.state_hash();
                     const std::lock_guard lock(mutex);
                     before[trainer.mesh().world_rank()] = hash;
                   }
                   if (trainer.steps_done() == 2) poison.put(trainer);
                   if (trainer.steps_done() != 3) return;
                   poison.take_away(trainer);
                   const Hash128 hash = trainer.state_hash();
                   const std::lock_guard lock(mutex);
                   if (!(before[trainer.mesh().world_rank()] == hash))
                     throw std::runtime_error("the skipped step has changed the state");
                   if (trainer.num_skipped() != 1) throw std::runtime_error("not counted");
                 }});
      for (std::size_t i = 0; i < run.steps.size(); ++i)
        CHECK(run.steps[i].skipped.empty() == (i != 2));
      CHECK_THAT(run.steps[2].skipped, Contains("the parameter head.weight itself"));
      CHECK(std::isnan(run.steps[2].loss));
      CHECK(std::isfinite(run.steps[3].loss));
      if (state == Hash128{}) {
        state = run.state_hash;
        losses = run.loss_hash;
      }
      CHECK(run.state_hash == state);
      CHECK(run.loss_hash == losses);
    }
    // Without the fault the run is another one.
    CHECK(train(plan, small_data(), {.num_steps = 6}).state_hash != state);
  }
}

TEST_CASE("after a skipped step the oracle, which never saw its batch, still agrees",
          "[nonfinite][oracle]") {
  // AdamW's corrections count updates: counting steps, the third update would be off by percents.
  Plan plan = small_plan(4);
  plan.integrity.on_nonfinite = "skip";
  plan.run.steps = 12;
  for (const SmallLayout& layout : {layouts()[0], layouts()[7]}) {
    Poison poison("stem.bias", 3, infinity);
    const TrainingRun run = train(on_layout(plan, layout), small_data(),
                                  {.num_steps = 12, .before_step = [&](Trainer& trainer) {
                                     if (trainer.steps_done() == 2) poison.put(trainer);
                                     if (trainer.steps_done() == 3) poison.take_away(trainer);
                                   }});
    const OracleRun truth = run_oracle(plan, small_data(), run.initial, {2});
    for (std::size_t i = 0; i < truth.steps.size(); ++i) {
      if (i == 2) continue;
      INFO("step " << i << ", " << text_of(layout));
      const auto relative = [](double got, double expected) {
        return std::abs(got - expected) / expected;
      };
      // As in test_trainer_oracle.
      CHECK(relative(run.steps[i].loss, truth.steps[i].loss) < 1e-6);
      CHECK(relative(run.steps[i].gradient_norm, truth.steps[i].gradient_norm) < 1e-6);
    }
  }
}

TEST_CASE("so many skips in a row end the run", "[nonfinite]") {
  Plan plan = on_layout(small_plan(4), {1, 2});
  plan.integrity.on_nonfinite = "skip";
  plan.integrity.max_skips = 2;
  const auto run = [&](index_t first_healthy) {
    Poison poison("final_norm.gain", 0, infinity);
    return error_of(plan, {.num_steps = 8, .before_step = [&](Trainer& trainer) {
                             if (trainer.steps_done() == 1) poison.put(trainer);
                             if (trainer.steps_done() == first_healthy) poison.take_away(trainer);
                           }});
  };
  CHECK(run(3) == "no error");
  const std::string error = run(8);
  CHECK_THAT(error, Contains("step 4: ") &&
                        Contains("3 such steps in a row, integrity.max_skips is 2") &&
                        Contains("the parameter final_norm.gain itself"));
}
