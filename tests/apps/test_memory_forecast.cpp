// What `weft check` says of parameters and memory, held against what a run allocates.
#include <catch2/catch.hpp>

#include <cmath>
#include <mutex>

#include "io/checkpoint/staged_state.hpp"
#include "parallel/plan/memory_model.hpp"
#include "tests/apps/training_run.hpp"

using namespace weft;
using weft::testing::data_of;
using weft::testing::on_ranks;
using weft::testing::small_gpt;
using weft::testing::small_plan;
using weft::testing::small_text_encoder;
using weft::testing::small_vit;
using weft::testing::SmallData;

TEST_CASE("the plan's parameters are the model's, and its bytes are what a step allocates",
          "[forecast]") {
  struct Case {
    index_t shards, tp, dp, micro;
    index_t pp = 1, zero = 0;
    bool sequence_parallel = false, is_vit = false;
    index_t bucket_bytes = index_t{4} << 20;
    const char* text = "";  // gpt, untied gpt, text_encoder
  };
  // Also: several microbatches a lane (micro 4 of 4 lanes: one; 2: two), uneven shards, uneven
  // lanes, stages, slices of the optimizer's state in one bucket and in many; a table that is used
  // twice, on one stage and on two.
  for (const Case& layout : {Case{4, 1, 1, 4},
                             {4, 1, 1, 2},
                             {4, 2, 2, 4},
                             {4, 3, 1, 2},
                             {4, 1, 3, 4},
                             {12, 5, 2, 2},
                             {.shards = 4, .tp = 1, .dp = 3, .micro = 4, .zero = 1},
                             {4, 2, 2, 4, 2, 1, true, false, 9000},
                             {4, 2, 1, 2, 2, 0, true, true},
                             {4, 1, 3, 4, 2, 1, false, true, 20000},
                             {4, 3, 2, 4, 1, 1, true, true},
                             {.shards = 4, .tp = 1, .dp = 1, .micro = 4, .text = "gpt"},
                             {.shards = 4, .tp = 2, .dp = 1, .micro = 2, .text = "gpt"},
                             {12, 5, 2, 2, 2, 1, true, false, 9000, "gpt"},
                             {4, 1, 3, 4, 2, 1, false, false, 20000, "gpt"},
                             {4, 2, 2, 2, 2, 0, false, false, 20000, "gpt"},
                             {4, 2, 1, 4, 2, 0, false, false, 20000, "untied gpt"},
                             {4, 3, 2, 4, 2, 1, true, false, 20000, "text_encoder"}}) {
    const std::string text = layout.text;
    Plan plan = text.ends_with("gpt") ? small_gpt(layout.shards)
                : text.empty()        ? small_plan(layout.shards)
                                      : small_text_encoder(layout.shards);
    plan.model.tied = text != "untied gpt";
    plan.batch.micro = layout.micro;
    plan.layout.tp = layout.tp;
    plan.layout.dp = layout.dp;
    plan.layout.pp = layout.pp;
    plan.layout.zero = layout.zero;
    plan.layout.sequence_parallel = layout.sequence_parallel;
    plan.comm.bucket_bytes = layout.bucket_bytes;
    plan.checkpoint.async = true;
    plan.checkpoint.every_steps = 1;
    if (layout.is_vit) {
      plan.model.kind = "vit";
      plan.model.heads = 4;
      plan.model.patch = 16;
    }
    REQUIRE(validate(plan, plan.num_ranks()).empty());
    std::mutex mutex;
    on_ranks(plan, data_of(plan), [&](Trainer& trainer) {
      trainer.step();
      const std::scoped_lock lock(mutex);  // Catch2's checks are one thread's business
      const index_t tp_rank = trainer.mesh().rank("tp"), dp_rank = trainer.mesh().rank("dp");
      const index_t pp_rank = trainer.mesh().rank("pp");
      INFO(plan.model.kind << (plan.ties_embedding() ? ", tied, S " : ", S ") << layout.shards
                           << " micro " << layout.micro << ", rank tp " << tp_rank << " of "
                           << layout.tp << ", dp " << dp_rank << " of " << layout.dp << ", pp "
                           << pp_rank << " of " << layout.pp << ", zero " << layout.zero);
      const auto shapes = parameter_shapes(plan, pp_rank);
      const auto& held = trainer.parameters().all();
      REQUIRE(shapes.size() == held.size());
      for (std::size_t i = 0; i < held.size(); ++i) {
        CHECK(shapes[i].name == held[i]->name);
        CHECK(shapes[i].spec(plan, tp_rank).text() == held[i]->spec.text());
        CHECK(shapes[i].spec(plan, tp_rank).local_elements() == held[i]->spec.local_elements());
      }
      const RankMemory memory = rank_memory(plan, tp_rank, dp_rank, pp_rank);
      const auto at_peak = [&](MemoryKind kind) {
        return static_cast<index_t>(trainer.context().arena.peak_of(kind));
      };
      const Arena& arena = trainer.context().arena;
      const auto before = arena.in_use(MemoryKind::workspace);
      const StagedState staged(trainer.context().arena, trainer.state(), trainer.share_to_write());
      CHECK(memory.staging_bytes == staged.num_bytes());
      CHECK(memory.staging_bytes ==
            static_cast<index_t>(arena.in_use(MemoryKind::workspace) - before));
      CHECK(memory.staging_bytes > 0);
      CHECK(memory.parameter_bytes == at_peak(MemoryKind::parameters));
      CHECK(memory.optimizer_bytes == at_peak(MemoryKind::optimizer));
      CHECK(memory.gradient_bytes == at_peak(MemoryKind::gradients));
      CHECK(local_parameters(plan, tp_rank, pp_rank).real == trainer.parameters().held_elements());
    });
  }
}

TEST_CASE("fast mode trains on more ranks than there are classes", "[forecast]") {
  const SmallData data;
  for (Plan plan : {small_plan(1), small_vit(1)}) {
    plan.numerics.mode = NumericsMode::fast;
    plan.batch.micro = plan.batch.global = 4;
    plan.layout.tp = 12;
    const auto run = weft::testing::train(plan, data, {.num_steps = 2});
    INFO(plan.model.kind);
    // Near ln 10 at the start, and nothing that is not a number.
    CHECK(run.steps[0].loss == Approx(2.3).margin(0.5));
    CHECK(std::isfinite(run.steps[1].loss));
    CHECK(run.steps[1].loss != run.steps[0].loss);
    // One rank's two steps, to rounding.
    plan.layout.tp = 1;
    const auto alone = weft::testing::train(plan, data, {.num_steps = 2});
    for (const std::size_t step : {0, 1}) {
      CHECK(run.steps[step].loss == Approx(alone.steps[step].loss).epsilon(1e-5));
      CHECK(run.steps[step].gradient_norm == Approx(alone.steps[step].gradient_norm).epsilon(1e-3));
    }
  }
}
