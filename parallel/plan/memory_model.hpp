// How many parameters, bytes and messages a plan means for each rank, from its numbers alone. Every
// function states its formula, so that what a run measures can be held against it. It counts what
// lasts for the whole step - parameters, gradients, optimizer state; activations, message buffers
// and the libraries' own memory come on top.
#pragma once

#include <string>
#include <vector>

#include "core/shape.hpp"
#include "core/shard_spec.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// One parameter of the model: its name, its shape without pads, and how it is cut over tp.
struct ParameterShape {
  std::string name;
  Shape global;
  int dim = -1;  // the dim that is cut in the plan's pieces; -1: every tp rank holds all of it
  index_t padded = 0;  // extent of that dim with pads: classes, rounded up to a multiple of shards

  index_t num_elements() const { return global.num_elements(); }
  bool is_split() const { return dim >= 0; }
  // What a tp rank holds of it; the layers' own parameters have the same specs (a test compares).
  ShardSpec spec(const Plan& plan, index_t tp_rank) const;
};

// All parameters, with H = hidden, F = H x mlp_ratio, D features and C classes of the data set:
//   stem         weight [H, D] split over D; bias [H]
//   each block   norm gain, bias [H]; up weight [F, H], bias [F] split over F;
//                down weight [H, F] split over F; bias [H]
//   final_norm   gain, bias [H]
//   head         weight [C, H], bias [C] split over C
std::vector<ParameterShape> parameter_shapes(const Plan& plan);

// Sum of num_elements(): HD + H + layers x (2H + FH + F + HF + H) + 2H + CH + C. No pads.
index_t num_parameters(const Plan& plan);

// Elements of all parameters on a tp rank: without pads, and as stored, with pads and the gaps that
// align each piece (core/shard_spec.hpp).
struct LocalElements {
  index_t real = 0;
  index_t stored = 0;
};
LocalElements local_parameters(const Plan& plan, index_t tp_rank);

// With n stored elements on the rank, 4 bytes each:
//   parameters   4n
//   gradients    4n x gradient_copies, 4 x the largest parameter where a lane needs no copy of its
//                own, and the token-block accumulators: 4 x shards x the elements of what is not
//                split
//   optimizer    4n x 2 for adamw (two moments), x 1 for sgd with momentum, x 0 without
struct RankMemory {
  index_t parameter_bytes = 0;
  index_t gradient_bytes = 0;
  index_t optimizer_bytes = 0;
  index_t total_bytes() const { return parameter_bytes + gradient_bytes + optimizer_bytes; }
};
RankMemory rank_memory(const Plan& plan, index_t tp_rank, index_t dp_rank);

// Most gradients of the whole local model that the rank holds at once while it folds its lanes: the
// nodes before a lane, and the lane's own. A lane of one microbatch that merges with its left
// neighbour has none of its own (parallel/data/grad_sync.hpp).
index_t gradient_copies(const Plan& plan, index_t dp_rank);

// Bytes that the rank sends per step to sum gradients over dp = N: reduce-scatter P_r (N-1)/N 4n,
// where P_r is the number of maximal nodes of its lanes, then all-gather (N-1)/N 4n. Slices are
// whole elements, so what is measured may differ by 4 (P_r + 1) (N-1) bytes per message group.
index_t gradient_bytes_sent(const Plan& plan, index_t tp_rank, index_t dp_rank);

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

// How many of `num_items` each of `num_ranks` owns, and the largest share over the mean share: how
// much longer than a balanced step the slowest rank's takes.
std::vector<index_t> shares(index_t num_ranks, index_t num_items);
double imbalance(index_t num_ranks, index_t num_items);

}  // namespace weft
