#include "parallel/plan/memory_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/reduce_tree.hpp"
#include "parallel/plan/plan_rules.hpp"

namespace weft {

namespace {

constexpr index_t bytes_per_element = 4;  // f32, the only dtype so far

ParameterShape whole(std::string name, index_t length) {
  return {.name = std::move(name), .global = {length}};
}

ParameterShape split(std::string name, const Shape& global, int dim) {
  return {.name = std::move(name), .global = global, .dim = dim, .padded = global[dim]};
}

void add_block(std::vector<ParameterShape>& shapes, const Plan& plan, index_t layer) {
  const index_t hidden = plan.model.hidden;
  const index_t feed_forward = plan.feed_forward();
  const std::string block = fmt::format("block.{}.", layer);
  shapes.push_back(whole(block + "norm.gain", hidden));
  shapes.push_back(whole(block + "norm.bias", hidden));
  shapes.push_back(split(block + "up.weight", {feed_forward, hidden}, 0));
  shapes.push_back(split(block + "up.bias", {feed_forward}, 0));
  shapes.push_back(split(block + "down.weight", {hidden, feed_forward}, 1));
  shapes.push_back(whole(block + "down.bias", hidden));
}

}  // namespace

std::vector<ParameterShape> parameter_shapes(const Plan& plan) {
  const SampleShape sample = sample_shape(plan.task);
  const index_t hidden = plan.model.hidden;
  std::vector<ParameterShape> shapes;
  shapes.push_back(split("stem.weight", {hidden, sample.features}, 1));
  shapes.push_back(whole("stem.bias", hidden));
  for (index_t layer = 0; layer < plan.model.layers; ++layer) add_block(shapes, plan, layer);
  shapes.push_back(whole("final_norm.gain", hidden));
  shapes.push_back(whole("final_norm.bias", hidden));
  const index_t padded = round_up(sample.classes, plan.numerics.shards);
  shapes.push_back({"head.weight", {sample.classes, hidden}, 0, padded});
  shapes.push_back({"head.bias", {sample.classes}, 0, padded});
  return shapes;
}

ShardSpec ParameterShape::spec(const Plan& plan, index_t tp_rank) const {
  if (!is_split()) return ShardSpec::replicated(global);
  return ShardSpec::cut(global, dim, padded, plan.num_pieces(), plan.pieces_of(tp_rank));
}

index_t num_parameters(const Plan& plan) {
  index_t sum = 0;
  for (const ParameterShape& shape : parameter_shapes(plan)) sum += shape.num_elements();
  return sum;
}

LocalElements local_parameters(const Plan& plan, index_t tp_rank) {
  LocalElements sum;
  for (const ParameterShape& shape : parameter_shapes(plan)) {
    const ShardSpec spec = shape.spec(plan, tp_rank);
    sum.real += spec.held_elements();
    sum.stored += spec.local_elements();
  }
  return sum;
}

namespace {

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

}  // namespace

index_t gradient_copies(const Plan& plan, index_t dp_rank) {
  return lane_memory(plan, dp_rank).copies;
}

RankMemory rank_memory(const Plan& plan, index_t tp_rank, index_t dp_rank) {
  const index_t bytes = local_parameters(plan, tp_rank).stored * bytes_per_element;
  const index_t sgd_copies = plan.optimizer.momentum > 0 ? 1 : 0;
  const index_t state_copies = plan.optimizer.kind == "adamw" ? 2 : sgd_copies;
  const index_t token_blocks = plan.numerics.mode == NumericsMode::exact ? plan.numerics.shards : 1;
  index_t largest = 0, summed_by_blocks = 0;
  for (const ParameterShape& shape : parameter_shapes(plan)) {
    const index_t stored = shape.spec(plan, tp_rank).local_elements();
    if (shape.is_split()) {
      largest = std::max(largest, stored);
    } else {
      summed_by_blocks += stored;
    }
  }
  largest = std::max(largest, summed_by_blocks);
  const index_t accumulators = token_blocks * summed_by_blocks;
  const LaneMemory lanes = lane_memory(plan, dp_rank);
  const index_t extra = accumulators + (lanes.shares_one_block ? largest : 0);
  return {.parameter_bytes = bytes,
          .gradient_bytes = bytes * lanes.copies + extra * bytes_per_element,
          .optimizer_bytes = bytes * state_copies};
}

index_t gradient_bytes_sent(const Plan& plan, index_t tp_rank, index_t dp_rank) {
  const index_t bytes = local_parameters(plan, tp_rank).stored * bytes_per_element;
  const auto nodes = reduce_tree::maximal_nodes(plan.lanes_of(dp_rank), plan.num_lanes());
  const index_t copies = 1 + static_cast<index_t>(nodes.size());
  return bytes / plan.layout.dp * copies * (plan.layout.dp - 1) +
         bytes % plan.layout.dp * copies * (plan.layout.dp - 1) / plan.layout.dp;
}

namespace {

// The counts nearest to `count`, one on each side, among the legal ones up to four times it that
// have the smallest P, if that is below the P of `count` itself.
template <class Legal>
TreeFactor tree_factor(index_t count, index_t num_ranks, Legal&& legal) {
  TreeFactor tree{.nodes = reduce_tree::mean_nodes(count, num_ranks), .better = {}};
  if (tree.nodes <= 1) return tree;
  double least = tree.nodes;
  index_t below = 0, above = 0;
  for (index_t other = num_ranks; other <= 4 * count; ++other) {
    const double nodes = other == count ? tree.nodes : reduce_tree::mean_nodes(other, num_ranks);
    if (nodes > least || nodes >= tree.nodes || !legal(other)) continue;
    if (nodes < least) below = above = 0;
    least = nodes;
    if (other < count) below = other;
    if (other > count && above == 0) above = other;
  }
  if (below != 0) tree.better.push_back(below);
  if (above != 0) tree.better.push_back(above);
  return tree;
}

}  // namespace

TreeFactor tp_tree_factor(const Plan& plan) {
  Plan trial = plan;
  return tree_factor(plan.num_pieces(), plan.layout.tp, [&](index_t count) {
    trial.numerics.shards = count;
    return plan_rules::pieces_fit(trial) && count <= sample_shape(plan.task).features;
  });
}

TreeFactor dp_tree_factor(const Plan& plan) {
  Plan trial = plan;
  return tree_factor(plan.num_lanes(), plan.layout.dp, [&](index_t count) {
    trial.numerics.lanes = count;
    return plan_rules::batch_divides(trial);
  });
}

std::vector<index_t> shares(index_t num_ranks, index_t num_items) {
  std::vector<index_t> sizes;
  for (index_t rank = 0; rank < num_ranks; ++rank) {
    sizes.push_back(part_of(rank, num_ranks, num_items).size());
  }
  return sizes;
}

double imbalance(index_t num_ranks, index_t num_items) {
  const std::vector<index_t> sizes = shares(num_ranks, num_items);
  const index_t largest = *std::max_element(sizes.begin(), sizes.end());
  return static_cast<double>(largest * num_ranks) / static_cast<double>(num_items);
}

}  // namespace weft
