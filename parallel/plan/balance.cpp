#include "parallel/plan/balance.hpp"

#include <algorithm>
#include <numeric>

#include "core/reduce_tree.hpp"
#include "parallel/plan/plan_rules.hpp"

namespace weft {

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
    return plan_rules::shards_fit(trial);
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

std::vector<index_t> stage_shares(const Plan& plan) {
  std::vector<index_t> sizes;
  for (index_t stage = 0; stage < plan.layout.pp; ++stage) {
    sizes.push_back(plan.blocks_of_stage(stage).size());
  }
  return sizes;
}

std::vector<index_t> row_shares(const Plan& plan) {
  std::vector<index_t> sizes;
  for (index_t rank = 0; rank < plan.layout.tp; ++rank) {
    sizes.push_back(plan.rows_of(rank).size());
  }
  return sizes;
}

double imbalance(const std::vector<index_t>& shares) {
  const index_t largest = *std::max_element(shares.begin(), shares.end());
  const index_t sum = std::accumulate(shares.begin(), shares.end(), index_t{0});
  return static_cast<double>(largest * std::ssize(shares)) / static_cast<double>(sum);
}

double imbalance(index_t num_ranks, index_t num_items) {
  return imbalance(shares(num_ranks, num_items));
}

index_t pipeline_microbatches(const Plan& plan) {
  const std::vector<index_t> lanes = shares(plan.layout.dp, plan.num_lanes());
  return *std::max_element(lanes.begin(), lanes.end()) * plan.microbatches_per_lane();
}

double ideal_bubble(index_t num_stages, index_t num_microbatches) {
  return static_cast<double>(num_stages - 1) /
         static_cast<double>(num_microbatches + num_stages - 1);
}

}  // namespace weft
