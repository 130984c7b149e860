// One result for every layout (ranks as threads), what changes it, and the stop before an update
// that is not finite.
#include <catch2/catch.hpp>

#include <bit>

#include "apps/agreement.hpp"
#include "parallel/comm/local_transport.hpp"
#include "tests/apps/training_run.hpp"
#include "tests/layers/rank_group.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

const SmallData& data() {
  static const SmallData small;
  return small;
}

struct Layout {
  index_t tp, dp;
  index_t threads = 1;
  std::string order = "tp,dp,pp";
};

Plan with_layout(Plan plan, const Layout& layout) {
  plan.layout.tp = layout.tp;
  plan.layout.dp = layout.dp;
  plan.layout.threads = layout.threads;
  plan.layout.order = layout.order;
  return plan;
}

// Three steps, one of them with a padded batch, and an evaluation.
TrainingRun short_run(const Plan& plan) {
  return train(plan, data(), {.num_steps = 3, .evaluate = true});
}

void check_layouts(const Plan& plan, const std::vector<Layout>& layouts) {
  const TrainingRun base = short_run(plan);
  std::vector<Layout> all = layouts;
  for (const int threads : several_threads()) all.push_back({1, 1, threads});
  for (const Layout& layout : all) {
    INFO("S = " << plan.numerics.shards << ", tp = " << layout.tp << ", dp = " << layout.dp
                << ", threads = " << layout.threads << ", order " << layout.order);
    const TrainingRun run = short_run(with_layout(plan, layout));
    CHECK(run.loss_hash == base.loss_hash);
    CHECK(run.state_hash == base.state_hash);
    CHECK(run.evaluation.samples == base.evaluation.samples);
    CHECK(bit_difference<double>({run.evaluation.loss, run.evaluation.accuracy},
                                 {base.evaluation.loss, base.evaluation.accuracy}) == "");
    // Hashes say that something differs; this says what.
    for (const auto& [name, values] : base.final) {
      INFO(name);
      CHECK(bit_difference(run.final.at(name), values) == "");
    }
  }
}

// Large batches, so that an epoch ends within three steps.
Plan layout_plan(index_t shards) {
  Plan plan = small_plan(shards);
  plan.batch.global *= 4;  // four microbatches a lane
  plan.model.dropout = 0.1;
  plan.run.steps = 3;
  return plan;
}

}  // namespace

TEST_CASE("one hash for every layout, S = R = 4", "[trainer]") {
  const Plan plan = layout_plan(4);
  REQUIRE(plan.steps_per_epoch() == 3);
  const std::vector<Layout> layouts{{2, 1}, {3, 1}, {4, 1}, {1, 2}, {1, 3}, {1, 4},
                                    {2, 2}, {3, 2}, {2, 3}, {4, 3}, {3, 4}, {2, 2, 1, "dp,tp"}};
  check_layouts(plan, layouts);
}

TEST_CASE("one hash for every layout, S = R = 12", "[trainer]") {
  check_layouts(layout_plan(12), {{12, 1}, {1, 12}, {5, 2}, {2, 5}, {3, 4}});
}

TEST_CASE("one hash for every layout with SGD", "[trainer]") {
  Plan plan = layout_plan(4);
  plan.optimizer.kind = "sgd";
  plan.optimizer.momentum = 0.9;
  plan.optimizer.clip_norm = 0.1;
  check_layouts(plan, {{4, 1}, {1, 4}, {2, 2}});
}

TEST_CASE("another run has another hash", "[trainer]") {
  const Plan plan = with_layout(layout_plan(4), {2, 2});
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
    return train(plan, data(), {.num_steps = 3, .before = [&](Trainer& trainer) {
                                  const Parameter& p = *trainer.parameters().all()[0];
                                  if (p.spec.owned().contains(3)) exchange(p.value_of(3), bits);
                                }});
  };
  CHECK(differs(with_flip(1u << 31)));                 // the sign of one weight
  CHECK(with_flip(1u).state_hash != base.state_hash);  // its last bit
  CHECK(with_flip(0u).state_hash == base.state_hash);
}

TEST_CASE("the set of samples decides, not the order of their list", "[trainer]") {
  const Plan plan = layout_plan(4);
  const TrainingRun base = short_run(plan);
  Split other = data().split();
  const LocalWorld world(1);
  const auto transport = world.make_transport(0);
  std::swap(other.train[0], other.train[149]);
  Trainer same(plan, data().images(), other, *transport);
  for (int i = 0; i < 3; ++i) same.step();
  // The sampler makes an order of its own.
  CHECK(same.loss_hash() == base.loss_hash);
  other.train[0] = data().split().validation[0];
  Trainer different(plan, data().images(), other, *transport);
  for (int i = 0; i < 3; ++i) different.step();
  CHECK(different.loss_hash() != base.loss_hash);
}

TEST_CASE("replicas that differ are found", "[trainer]") {
  for (const auto& [tp, dp] : {std::pair{2, 1}, {1, 2}}) {
    const Plan plan = with_layout(layout_plan(4), {tp, dp});
    std::vector<std::string> errors(2);
    on_ranks(plan, data(), [&](Trainer& trainer) {
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
    for (const std::string& error : errors) CHECK(error.find("differ") != std::string::npos);
  }
}

TEST_CASE("a loss that is not finite stops all ranks before the update", "[trainer]") {
  for (const Layout& layout : {Layout{1, 1}, Layout{2, 2}, Layout{4, 1}}) {
    Plan plan = with_layout(layout_plan(4), layout);
    plan.optimizer.kind = "sgd";
    plan.optimizer.lr = 1e30;
    plan.optimizer.clip_norm = 0.0;
    std::vector<std::string> faults(static_cast<std::size_t>(plan.num_ranks()), "no error");
    on_ranks(plan, data(), [&](Trainer& trainer) {
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
    INFO("tp = " << layout.tp << ", dp = " << layout.dp);
    for (const std::string& fault : faults) CHECK(fault == "");
  }
}
