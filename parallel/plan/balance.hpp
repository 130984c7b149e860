// How evenly a plan's work lies on its ranks, and what the fixed trees of exact mode cost there.
#pragma once

#include <vector>

#include "parallel/plan/plan.hpp"

namespace weft {

// P, the mean number of maximal nodes a rank holds: a reduce-scatter moves P times, an all-reduce
// (1+P)/2 times the bytes of a ring. `better` lists legal numbers of pieces (or lanes) near the
// plan's own that move less on the same layout; changing them makes another plan, with another
// result.
struct TreeFactor {
  double nodes = 1;
  std::vector<index_t> better;
  double all_reduce_rings() const { return (1 + nodes) / 2; }
};
TreeFactor tp_tree_factor(const Plan& plan);
TreeFactor dp_tree_factor(const Plan& plan);

// How many of `num_items` each of `num_ranks` owns.
std::vector<index_t> shares(index_t num_ranks, index_t num_items);

// Blocks of each stage, and rows of a microbatch on each tp rank between crossings.
std::vector<index_t> stage_shares(const Plan& plan);
std::vector<index_t> row_shares(const Plan& plan);

// The largest share over the mean share: how much longer than a balanced step the slowest rank's
// takes.
double imbalance(const std::vector<index_t>& shares);
double imbalance(index_t num_ranks, index_t num_items);

// Microbatches that run through the pipeline in a step, on the replica with the most of them.
index_t pipeline_microbatches(const Plan& plan);

// The part of a step that each of p stages waits, with m microbatches and stages that all take
// equally long: (p - 1) / (m + p - 1), for GPipe and 1F1B alike.
double ideal_bubble(index_t num_stages, index_t num_microbatches);

}  // namespace weft
