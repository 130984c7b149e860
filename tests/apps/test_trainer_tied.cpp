// A generator of text whose embedding and head are one table (EXACT 3.11): one set of bits in any
// stages, the double oracle's losses, and a last stage's copy that is always the first stage's
// table.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <mutex>

#include "apps/agreement.hpp"
#include "tests/apps/oracle_run.hpp"
#include "tests/core/shard_values.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// Three blocks and three steps of which the last has a padded batch.
Plan short_gpt(index_t shards, index_t lanes, index_t microbatches_per_lane) {
  Plan plan = small_gpt(shards);
  plan.numerics.lanes = lanes;
  plan.batch.global = 72;
  plan.batch.micro = 72 / (lanes * microbatches_per_lane);
  plan.model.layers = 3;
  plan.model.dropout = 0.1;
  plan.optimizer.clip_norm = 0.25;
  plan.run.steps = 3;
  return plan;
}

TrainingRun short_run(const Plan& plan) {
  return train(plan, data_of(plan), {.num_steps = 3, .evaluate = true});
}

double relative(double got, double expected) { return std::abs(got - expected) / expected; }

// The copy against the table, whole, after each step; what is not equal.
std::string copies_that_differ(const Plan& plan, index_t num_steps) {
  std::mutex mutex;
  std::string all;
  std::vector<Floats> tables(static_cast<std::size_t>(num_steps)), copies = tables;
  on_ranks(plan, data_of(plan), [&](Trainer& trainer) {
    const TiedParameter& tied = *trainer.tied();
    for (std::size_t step = 0; step < tables.size(); ++step) {
      trainer.step();
      const std::lock_guard lock(mutex);
      for (const auto& [p, whole] :
           {std::pair{tied.original(), &tables[step]}, {tied.copy(), &copies[step]}}) {
        if (p == nullptr) continue;
        whole->resize(static_cast<std::size_t>(p->spec.global().num_elements()));
        gather(p->spec, p->value, *whole);
      }
    }
  });
  for (std::size_t step = 0; step < tables.size(); ++step) {
    all += bit_difference(copies[step], tables[step]);
    if (step > 0 && bit_difference(tables[step], tables[step - 1]).empty())
      all += "the table has not changed; ";
  }
  return all;
}

}  // namespace

TEST_CASE("one set of bits with a tied table: stages, tp, dp, ZeRO, schedules", "[tied]") {
  const Plan plan = short_gpt(4, 4, 3);
  const TrainingRun base = short_run(plan);
  REQUIRE(base.steps.back().num_real < plan.batch.global);
  REQUIRE(base.steps[0].gradient_norm > plan.optimizer.clip_norm);
  REQUIRE(base.final.count("head.weight") == 0);
  for (const index_t pp : {1, 2, 3}) {
    for (const index_t tp : {1, 2}) {
      for (const index_t dp : {1, 2}) {
        for (const index_t zero : {0, 1}) {
          if (zero == 1 && dp == 1) continue;
          for (const char* schedule : {"1f1b", "gpipe"}) {
            if (pp == 1 && schedule[0] == 'g') continue;
            const Plan here = on_layout(plan, {tp, dp, pp, zero, false, schedule});
            INFO(text_of(here));
            check_equal(short_run(here), base);
          }
        }
      }
    }
  }
}

// 256 words in 12 pieces are padded to 264; lanes fold in uneven trees; buckets end inside tensors.
TEST_CASE("one set of bits with a tied table: pads, uneven lanes, small buckets", "[tied]") {
  for (Plan plan : {short_gpt(12, 3, 2), short_gpt(12, 6, 1), short_gpt(3, 12, 3)}) {
    const TrainingRun base = short_run(plan);
    plan.comm.bucket_bytes = 5003;
    for (const SmallLayout& layout : {SmallLayout{3, 2, 2, 1, true}, SmallLayout{1, 3, 3, 0},
                                      SmallLayout{2, 3, 1, 1}, SmallLayout{2, 1, 2, 0, true}}) {
      const Plan here = on_layout(plan, layout);
      INFO(text_of(here));
      check_equal(short_run(here), base);
    }
  }
}

TEST_CASE("a head of its own is another model, and has one result, too", "[tied]") {
  Plan plan = short_gpt(4, 4, 1);
  const TrainingRun tied = short_run(plan);
  plan.model.tied = false;
  const TrainingRun base = short_run(plan);
  CHECK(base.final.count("head.weight") == 1);
  CHECK(base.loss_hash != tied.loss_hash);
  CHECK(bit_difference(base.initial.at("embedding.weight"), tied.initial.at("embedding.weight")) ==
        "");
  for (const SmallLayout& layout : {SmallLayout{2, 2, 2, 1}, SmallLayout{1, 2, 3}})
    check_equal(short_run(on_layout(plan, layout)), base);
}

TEST_CASE("the last stage's copy is the table after each step", "[tied]") {
  const Plan plan = short_gpt(4, 4, 1);
  for (const SmallLayout& layout : {SmallLayout{1, 1, 1}, SmallLayout{2, 1, 2},
                                    SmallLayout{1, 2, 3, 1}, SmallLayout{2, 2, 2}}) {
    INFO(text_of(on_layout(plan, layout)));
    CHECK(copies_that_differ(on_layout(plan, layout), 3) == "");
  }
}

#ifdef WEFT_SANITIZED
constexpr index_t num_oracle_steps = 5;
#else
constexpr index_t num_oracle_steps = 20;
#endif

TEST_CASE("the first steps of models of text against the oracle", "[tied][oracle]") {
  // As in test_trainer_oracle.cpp, whose bound on norms is tighter: of a generator's 256 words most
  // are rare in a batch, and AdamW makes whole steps of their small gradients, whose rounding then
  // shows. Measured: losses within 1.2e-7, norms within 1.2e-6.
  constexpr double bound = 1e-6, norm_bound = 3e-6;
  Plan adamw = short_gpt(4, 4, 3);
  adamw.run.steps = num_oracle_steps;
  Plan sgd = adamw;
  sgd.model.dropout = 0.0;
  sgd.optimizer.kind = "sgd";
  sgd.optimizer.momentum = 0.9;
  sgd.optimizer.lr = 0.05;
  Plan untied = adamw;
  untied.model.tied = false;
  Plan classifier = small_text_encoder(4);
  for (const Plan& plan : {adamw, sgd, untied, classifier}) {
    const RunOptions options{.num_steps = plan.num_steps(), .evaluate = true};
    TrainingRun one = train(plan, data_of(plan), options);
    const OracleRun truth = run_oracle(plan, data_of(plan), one.initial);
    const Plan spread =
        on_layout(plan, {.tp = 2, .dp = 2, .pp = 2, .zero = 1, .sequence_parallel = true});
    double worst_loss = 0.0, worst_norm = 0.0;
    for (const TrainingRun& run : {one, train(spread, data_of(plan), options)}) {
      for (std::size_t i = 0; i < truth.steps.size(); ++i) {
        const StepResult& got = run.steps[i];
        const OracleRun::Step& expected = truth.steps[i];
        INFO(plan.model.kind << ", " << plan.optimizer.kind << ", step " << i << ": loss "
                             << got.loss << ", oracle " << expected.loss << "; norm "
                             << got.gradient_norm << ", oracle " << expected.gradient_norm);
        CHECK(got.num_real == expected.num_real);
        CHECK(relative(got.loss, expected.loss) < bound);
        CHECK(relative(got.gradient_norm, expected.gradient_norm) < norm_bound);
        worst_loss = std::max(worst_loss, relative(got.loss, expected.loss));
        worst_norm = std::max(worst_norm, relative(got.gradient_norm, expected.gradient_norm));
      }
      CHECK(relative(run.evaluation.loss, truth.validation_loss) < bound);
      CHECK(run.steps.back().loss < run.steps.front().loss);
    }
    std::cout << plan.model.kind << (plan.ties_embedding() ? ", tied, " : ", ")
              << plan.optimizer.kind << ": largest relative deviation of losses " << worst_loss
              << ", of gradient norms " << worst_norm << "\n";
  }
}

TEST_CASE("a copy that is not finite is named as the table of the last stage", "[tied]") {
  const Plan plan = on_layout(short_gpt(4, 4, 1), {1, 2, 2, 1});
  std::vector<std::string> errors(static_cast<std::size_t>(plan.num_ranks()));
  on_ranks(plan, data_of(plan), [&](Trainer& trainer) {
    trainer.step();
    if (const Parameter* copy = trainer.tied()->copy())
      copy->value[copy->spec.offset(1) + 3] = std::numeric_limits<float>::infinity();
    try {
      trainer.step();
    } catch (const AgreedError& error) {
      errors[static_cast<std::size_t>(trainer.mesh().world_rank())] = error.what();
    }
  });
  for (const std::string& error : errors) {
    CHECK_THAT(error, Catch::Contains("the parameter embedding.weight itself, before the step, on "
                                      "rank 2 (tp 0, dp 0, pp 1)"));
  }
}

TEST_CASE("a step that is left out leaves table and copy as they were", "[tied]") {
  Plan plan = short_gpt(4, 4, 1);
  plan.integrity.on_nonfinite = "skip";
  const auto run = [&](const SmallLayout& layout) {
    return train(on_layout(plan, layout), data_of(plan),
                 {.num_steps = 3, .evaluate = true, .before_step = [](Trainer& trainer) {
                    // Infinite for one step; the third one's before_step puts it right.
                    static constexpr float infinity = std::numeric_limits<float>::infinity();
                    for (const auto& p : trainer.parameters().all()) {
                      if (p->name != "final_norm.bias") continue;
                      if (trainer.steps_done() == 1) p->value[5] = infinity;
                      if (trainer.steps_done() == 2) p->value[5] = 0.25f;
                    }
                  }});
  };
  const TrainingRun base = run({1, 1, 1});
  CHECK(!base.steps[1].skipped.empty());
  CHECK(base.steps[2].skipped.empty());
  check_equal(run({1, 2, 2, 1}), base);
  check_equal(run({2, 1, 3}), base);
}
