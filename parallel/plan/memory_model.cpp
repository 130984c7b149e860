#include "parallel/plan/memory_model.hpp"

#include <algorithm>

#include "core/reduce_tree.hpp"
#include "parallel/data/write_share.hpp"

namespace weft {

namespace {

constexpr index_t bytes_per_element = 4;  // f32, the only dtype so far

// What GradSync holds while it folds the lanes of a rank.
struct LaneMemory {
  index_t nodes = 0;     // before the lane, each a whole local gradient
  bool has_own = false;  // one more for the lane itself; else it has room for one parameter only
  index_t copies() const { return nodes + (has_own ? 1 : 0); }
};

// While each lane is under way.
std::vector<LaneMemory> lane_memory(const Plan& plan, index_t dp_rank) {
  std::vector<LaneMemory> memory;
  reduce_tree::Stack<int> nodes(plan.num_lanes());
  const Range lanes = plan.lanes_of(dp_rank);
  for (index_t lane = lanes.begin; lane < lanes.end; ++lane) {
    const auto before = static_cast<index_t>(nodes.nodes().size());
    const bool merges = !nodes.merges_of({lane, lane + 1}).empty();
    memory.push_back({before, !merges || plan.microbatches_per_lane() > 1});
    nodes.push_merged({lane, lane + 1}, 0);
  }
  return memory;
}

}  // namespace

index_t gradient_copies(const Plan& plan, index_t dp_rank) {
  index_t most = 0;
  for (const LaneMemory& lane : lane_memory(plan, dp_rank)) most = std::max(most, lane.copies());
  return most;
}

PlaceMemory::PlaceMemory(const Plan& plan, index_t tp_rank, index_t pp_rank) : plan_(plan) {
  std::vector<FlatEntry> entries;
  for (const ParameterShape& shape : parameter_shapes(plan, pp_rank)) {
    entries.push_back({shape.spec(plan, tp_rank),
                       shape.by_token_blocks ? GradientRows::token_blocks : GradientRows::all});
    const index_t stored = entries.back().spec.local_elements();
    stored_ += stored;
    if (shape.by_token_blocks) {
      summed_by_blocks_ += stored;
    } else {
      largest_ = std::max(largest_, stored);
    }
  }
  copied_ = local_copies(plan, tp_rank, pp_rank).stored;
  token_blocks_ = plan.token_blocks_of(tp_rank).size();
  const bool has_shares = plan.layout.zero > 0;
  if (!has_shares && !plan.stages_checkpoints()) return;
  const FlatLayout layout = flat_layout(entries);
  const auto buckets =
      write_buckets(layout, has_shares, plan.comm.bucket_bytes, static_cast<int>(plan.layout.dp));
  for (int rank = 0; rank < static_cast<int>(plan.layout.dp); ++rank) {
    const FlatRanges slice = slices_of(buckets, rank);
    if (has_shares) shares_.push_back(slice.num_elements());
    if (plan.stages_checkpoints())
      staged_.push_back(write_share(layout, entries, static_cast<int>(tp_rank),
                                    static_cast<int>(plan.layout.tp), slice)
                            .num_elements());
  }
}

index_t PlaceMemory::optimizer_elements(index_t dp_rank) const {
  return shares_.empty() ? stored_ : shares_[static_cast<std::size_t>(dp_rank)];
}

RankMemory PlaceMemory::of(index_t dp_rank) const {
  index_t most = 0;  // at once, while some lane is under way
  for (const LaneMemory& lane : lane_memory(plan_, dp_rank)) {
    const index_t shared = lane.has_own ? 0 : std::max(largest_, summed_by_blocks_);
    most = std::max(most, stored_ * lane.copies() + shared + copied_ * (lane.nodes + 1));
  }
  const index_t gradients = most + token_blocks_ * summed_by_blocks_;
  const index_t values = stored_ + (plan_.layout.pp > 1 ? copied_ : 0);
  const index_t optimizer = optimizer_elements(dp_rank) * plan_.optimizer.num_moments();
  const index_t staged = staged_.empty() ? 0
                                         : staged_[static_cast<std::size_t>(dp_rank)] *
                                               (1 + plan_.optimizer.num_moments());
  return {.parameter_bytes = values * bytes_per_element,
          .gradient_bytes = gradients * bytes_per_element,
          .optimizer_bytes = optimizer * bytes_per_element,
          .staging_bytes = staged * bytes_per_element};
}

index_t checkpoint_bytes(const Plan& plan) {
  return num_parameters(plan) * (1 + plan.optimizer.num_moments()) * bytes_per_element;
}

index_t optimizer_elements(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  return PlaceMemory(plan, tp_rank, pp_rank).optimizer_elements(dp_rank);
}

RankMemory rank_memory(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank) {
  return PlaceMemory(plan, tp_rank, pp_rank).of(dp_rank);
}

}  // namespace weft
