// What changes a run's hash and what does not, replicas that differ, and the stop before an update
// that is not finite.
#include <catch2/catch.hpp>

#include <bit>

#include "apps/agreement.hpp"
#include "parallel/comm/local_transport.hpp"
#include "tests/apps/training_run.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

TrainingRun short_run(const Plan& plan) {
  return train(plan, small_data(), {.num_steps = 3, .evaluate = true});
}

// Large batches, so that an epoch ends within three steps.
Plan short_plan() {
  Plan plan = small_plan(4);
  plan.batch.global *= 4;  // four microbatches a lane
  plan.model.dropout = 0.1;
  plan.run.steps = 3;
  return plan;
}

}  // namespace

TEST_CASE("another run has another hash", "[trainer][hashes]") {
  const Plan plan = on_layout(short_plan(), {2, 2});
  const TrainingRun base = short_run(plan);
  CHECK(short_run(plan).state_hash == base.state_hash);

  const auto differs = [&](const TrainingRun& run) {
    return run.state_hash != base.state_hash && run.loss_hash != base.loss_hash;
  };
  Plan other = plan;
  other.numerics.seed = 2;
  CHECK(differs(short_run(other)));
  other = plan;
  other.numerics.shards = 2;  // another plan: leaves of another width
  CHECK(short_run(other).state_hash != base.state_hash);

  const auto exchange = [](float* value, std::uint32_t bits) {
    *value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(*value) ^ bits);
  };
  const auto with_flip = [&](std::uint32_t bits) {
    return train(plan, small_data(), {.num_steps = 3, .before = [&](Trainer& trainer) {
                                        const Parameter& p = *trainer.parameters().all()[0];
                                        if (p.spec.owned().contains(3))
                                          exchange(p.value_of(3), bits);
                                      }});
  };
  CHECK(differs(with_flip(1u << 31)));                 // the sign of one weight
  CHECK(with_flip(1u).state_hash != base.state_hash);  // its last bit
  CHECK(with_flip(0u).state_hash == base.state_hash);
}

TEST_CASE("the set of samples decides, not the order of their list", "[trainer][hashes]") {
  const Plan plan = short_plan();
  const TrainingRun base = short_run(plan);
  TrainingData other = small_data().training();
  const LocalWorld world(1);
  const auto transport = world.make_transport(0);
  std::swap(other.split.train[0], other.split.train[149]);
  Trainer same(plan, other, *transport);
  for (int i = 0; i < 3; ++i) same.step();
  // The sampler makes an order of its own.
  CHECK(same.loss_hash() == base.loss_hash);
  other.split.train[0] = small_data().split().validation[0];
  Trainer different(plan, other, *transport);
  for (int i = 0; i < 3; ++i) different.step();
  CHECK(different.loss_hash() != base.loss_hash);
}

TEST_CASE("replicas that differ are found", "[trainer][hashes]") {
  for (const SmallLayout& layout :
       {SmallLayout{2, 1}, SmallLayout{1, 2}, SmallLayout{1, 2, 1, 1}, SmallLayout{2, 1, 2}}) {
    const Plan plan = on_layout(short_plan(), layout);
    std::vector<std::string> errors(static_cast<std::size_t>(plan.num_ranks()));
    on_ranks(plan, small_data(), [&](Trainer& trainer) {
      const int rank = trainer.mesh().world_rank();
      for (const auto& p : trainer.parameters().all()) {
        if (rank == 1 && p->spec.is_replicated()) p->value[0] += 1.0f;
      }
      try {
        trainer.state_hash();
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
    INFO("tp = " << layout.tp << ", dp = " << layout.dp << ", pp = " << layout.pp);
    for (const std::string& error : errors) CHECK(error.find("differ") != std::string::npos);
  }
}

TEST_CASE("a loss that is not finite stops all ranks before the update", "[trainer][hashes]") {
  for (const SmallLayout& layout :
       {SmallLayout{1, 1}, SmallLayout{2, 2}, SmallLayout{4, 1}, SmallLayout{1, 2, 2, 1}}) {
    Plan plan = on_layout(short_plan(), layout);
    plan.optimizer.kind = "sgd";
    plan.optimizer.lr = 1e30;
    plan.optimizer.clip_norm = 0.0;
    std::vector<std::string> faults(static_cast<std::size_t>(plan.num_ranks()), "no error");
    on_ranks(plan, small_data(), [&](Trainer& trainer) {
      std::string& fault = faults[static_cast<std::size_t>(trainer.mesh().world_rank())];
      trainer.step();
      const Hash128 before = trainer.state_hash();
      try {
        trainer.step();
      } catch (const AgreedError& error) {
        fault = error.code() == ExitCode::failed ? "" : "wrong code";
        if (std::string(error.what()).find("step 2") == std::string::npos) fault = error.what();
      }
      if (trainer.state_hash() != before) fault = "the state has changed";
    });
    INFO("tp = " << layout.tp << ", dp = " << layout.dp << ", pp = " << layout.pp);
    for (const std::string& fault : faults) CHECK(fault == "");
  }
}
