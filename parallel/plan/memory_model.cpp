#include "parallel/plan/memory_model.hpp"

#include <algorithm>

#include "core/reduce_tree.hpp"
#include "parallel/data/buckets.hpp"

namespace weft {

namespace {

constexpr index_t bytes_per_element = 4;  // f32, the only dtype so far

// What GradSync holds while it folds the lanes of a rank.
struct LaneMemory {
  index_t copies = 0;             // of the whole local gradient
  bool shares_one_block = false;  // some lane has room for one parameter only
};

LaneMemory lane_memory(const Plan& plan, index_t dp_rank) {
  LaneMemory memory;
  index_t before = 0;
  reduce_tree::Stack<int> nodes(plan.num_lanes());
  const Range lanes = plan.lanes_of(dp_rank);
  for (index_t lane = lanes.begin; lane < lanes.end; ++lane) {
    nodes.push({lane, lane + 1}, 0, [](int, int) { return 0; });
    const auto after = static_cast<index_t>(nodes.nodes().size());
    const bool merges = after <= before;
    const bool has_own = !merges || plan.microbatches_per_lane() > 1;
    if (!has_own) memory.shares_one_block = true;
    memory.copies = std::max(memory.copies, before + (has_own ? 1 : 0));
    before = after;
  }
  return memory;
}

index_t state_copies(const OptimizerPlan& optimizer) {
  if (optimizer.kind == "adamw") return 2;
  return optimizer.momentum > 0 ? 1 : 0;
}

}  // namespace

index_t gradient_copies(const Plan& plan, index_t dp_rank) {
  return lane_memory(plan, dp_rank).copies;
}

index_t optimizer_elements(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  const index_t stored = local_parameters(plan, tp_rank, pp_rank).stored;
  if (plan.layout.zero == 0) return stored;
  std::vector<FlatEntry> entries;
  for (const ParameterShape& shape : parameter_shapes(plan, pp_rank)) {
    entries.push_back({shape.spec(plan, tp_rank),
                       shape.by_token_blocks ? GradientRows::token_blocks : GradientRows::all});
  }
  const std::vector<Bucket> buckets =
      make_buckets(flat_layout(entries), plan.comm.bucket_bytes, static_cast<int>(plan.layout.dp));
  return slices_of(buckets, static_cast<int>(dp_rank)).num_elements();
}

RankMemory rank_memory(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  index_t all = 0, largest = 0, summed_by_blocks = 0;
  for (const ParameterShape& shape : parameter_shapes(plan, pp_rank)) {
    const index_t stored = shape.spec(plan, tp_rank).local_elements();
    all += stored;
    if (shape.by_token_blocks) {
      summed_by_blocks += stored;
    } else {
      largest = std::max(largest, stored);
    }
  }
  const index_t accumulators = plan.token_blocks_of(tp_rank).size() * summed_by_blocks;
  const LaneMemory lanes = lane_memory(plan, dp_rank);
  const index_t shared = lanes.shares_one_block ? std::max(largest, summed_by_blocks) : 0;
  const index_t optimizer =
      optimizer_elements(plan, tp_rank, dp_rank, pp_rank) * state_copies(plan.optimizer);
  return {.parameter_bytes = all * bytes_per_element,
          .gradient_bytes = (all * lanes.copies + accumulators + shared) * bytes_per_element,
          .optimizer_bytes = optimizer * bytes_per_element};
}

}  // namespace weft
