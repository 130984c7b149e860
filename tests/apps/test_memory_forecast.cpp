// What `weft check` says of parameters and memory, held against what a run allocates.
#include <catch2/catch.hpp>

#include <mutex>

#include "parallel/plan/memory_model.hpp"
#include "tests/apps/training_run.hpp"

using namespace weft;
using weft::testing::on_ranks;
using weft::testing::small_plan;
using weft::testing::small_vit;
using weft::testing::SmallData;

TEST_CASE("the plan's parameters are the model's, and its bytes are what a step allocates",
          "[forecast]") {
  const SmallData data;
  struct Layout {
    index_t shards, tp, dp, micro;
    index_t pp = 1;
    bool sequence_parallel = false, vit = false;
  };
  // Also: several microbatches a lane (micro 4 of 4 lanes: one; 2: two), uneven shards, uneven
  // lanes.
  for (const Layout& layout : {Layout{4, 1, 1, 4},
                               {4, 1, 1, 2},
                               {4, 2, 2, 4},
                               {4, 3, 1, 2},
                               {4, 1, 3, 4},
                               {12, 5, 2, 2},
                               {4, 3, 2, 4, 1, true, true},
                               {4, 2, 2, 2, 2, true, true},
                               {4, 2, 3, 4, 2, false, false}}) {
    Plan plan = layout.vit ? small_vit(layout.shards) : small_plan(layout.shards);
    plan.batch.micro = layout.micro;
    plan.layout.tp = layout.tp;
    plan.layout.dp = layout.dp;
    plan.layout.pp = layout.pp;
    plan.layout.sequence_parallel = layout.sequence_parallel;
    REQUIRE(validate(plan, plan.num_ranks()).empty());
    std::mutex mutex;
    on_ranks(plan, data, [&](Trainer& trainer) {
      trainer.step();
      const std::scoped_lock lock(mutex);  // Catch2's checks are one thread's business
      const index_t tp_rank = trainer.mesh().rank("tp"), dp_rank = trainer.mesh().rank("dp");
      const index_t pp_rank = trainer.mesh().rank("pp");
      INFO("S " << layout.shards << " micro " << layout.micro << ", rank tp " << tp_rank << " of "
                << layout.tp << ", dp " << dp_rank << " of " << layout.dp << ", pp " << pp_rank
                << " of " << layout.pp);
      const auto shapes = parameter_shapes(plan, pp_rank);
      const auto& held = trainer.parameters().all();
      REQUIRE(shapes.size() == held.size());
      for (std::size_t i = 0; i < held.size(); ++i) {
        CHECK(shapes[i].name == held[i]->name);
        CHECK(shapes[i].spec(plan, tp_rank).text() == held[i]->spec.text());
        CHECK(shapes[i].spec(plan, tp_rank).local_elements() == held[i]->spec.local_elements());
      }
      const RankMemory memory = rank_memory(plan, tp_rank, dp_rank, pp_rank);
      const Arena::Peak& peak = trainer.context().arena.peak();
      const auto at_peak = [&](MemoryKind kind) {
        return static_cast<index_t>(peak.by_kind[static_cast<std::size_t>(kind)]);
      };
      CHECK(memory.parameter_bytes == at_peak(MemoryKind::parameters));
      CHECK(memory.optimizer_bytes == at_peak(MemoryKind::optimizer));
      // A transformer's peak may come before the last lane's gradients, with more activations.
      CHECK(memory.gradient_bytes >= at_peak(MemoryKind::gradients));
      if (!layout.vit) CHECK(memory.gradient_bytes == at_peak(MemoryKind::gradients));
      CHECK(local_parameters(plan, tp_rank, pp_rank).real == trainer.parameters().held_elements());
    });
  }
}
