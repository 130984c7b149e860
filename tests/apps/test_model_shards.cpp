// What a layout's ranks write, told without ranks, is what a trainer's ranks do write.
#include <catch2/catch.hpp>

#include <mutex>

#include "apps/model_shards.hpp"
#include "tests/apps/training_run.hpp"

using namespace weft;
using namespace weft::testing;

TEST_CASE("shards of a layout, without its ranks", "[model_shards]") {
  const auto check = [&](const Plan& model, const SmallLayout& layout) {
    Plan plan = on_layout(model, layout);
    plan.comm.bucket_bytes = 20000;  // several buckets, so that slices are many
    const std::vector<TensorRecord> tensors = model_tensors(plan);
    std::vector<ShardCut> written(static_cast<std::size_t>(plan.num_ranks()));
    std::mutex mutex;
    on_ranks(plan, data_of(plan), [&](Trainer& trainer) {
      const ShardCut cut = cut_of_rank(tensors, trainer.parameters(), trainer.share_to_write());
      const std::lock_guard lock(mutex);
      written[static_cast<std::size_t>(trainer.mesh().world().rank())] = cut;
    });
    INFO(plan.model.kind << " tp " << layout.tp << " dp " << layout.dp << " pp " << layout.pp
                         << " zero " << layout.zero);
    CHECK(shards_of_layout(plan, tensors) == written);
  };
  Plan untied = small_gpt(4);
  untied.model.tied = false;
  for (const Plan& plan :
       {small_plan(4), small_vit(4), small_gpt(4), untied, small_text_encoder(4)}) {
    check(plan, {1, 1, 1, 0});
    check(plan, {1, 1, 1, 1});
    check(plan, {2, 2, 1, 0});
    check(plan, {2, 2, 1, 1});
    check(plan, {1, 4, 2, 1});
    check(plan, {4, 1, 2, 0});
  }
}
