// How many bytes a plan means for each rank, from its numbers alone. Every function states its
// formula, so that what a run measures can be held against it. It counts what lasts for the whole
// step - parameters, gradients, optimizer state; activations, message buffers and the libraries'
// own memory come on top.
#pragma once

#include <vector>

#include "parallel/plan/balance.hpp"
#include "parallel/plan/parameter_shapes.hpp"

namespace weft {

// With n stored elements of parameters on the rank, 4 bytes each:
//   parameters   4n
//   gradients    4n x gradient_copies; 4 x what one lane shares where it needs no copy of its own
//                (the largest parameter, or all that are summed by token blocks); and the
//                token-block accumulators: 4 x the rank's token blocks x the elements of what is
//                summed by them
//                With `model.tied`, on the last stage, with c stored elements of the table: 4c of
//                values more, unless that stage is the first, too; and 4c of gradients for each of
//                the head's own that it holds at once: one for the lane under way, and its nodes
//   optimizer    4 x optimizer_elements x 2 for adamw (two moments), x 1 for sgd with momentum, x 0
//                without
//   staging      with checkpoint.async and checkpoints on the way: 4 x the elements that the rank
//                writes (parallel/data/write_share) x (1 + moments), host memory
struct RankMemory {
  index_t parameter_bytes = 0;
  index_t gradient_bytes = 0;
  index_t optimizer_bytes = 0;
  index_t staging_bytes = 0;
  index_t total_bytes() const {
    return parameter_bytes + gradient_bytes + optimizer_bytes + staging_bytes;
  }
};
RankMemory rank_memory(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank = 0);

// Most gradients of the whole local model that the rank holds at once while it folds its lanes: the
// nodes before a lane, and the lane's own. A lane of one microbatch that merges with its left
// neighbour has none of its own (parallel/data/grad_sync.hpp).
index_t gradient_copies(const Plan& plan, index_t dp_rank);

// Of the rank's n stored elements, those whose optimizer state it keeps: all of them, or with
// ZeRO-1 its slices over dp, cut by the run's own rule (parallel/data/buckets.hpp).
index_t optimizer_elements(const Plan& plan, index_t tp_rank, index_t dp_rank, index_t pp_rank);

// Bytes of parameters and optimizer state in one checkpoint, of all ranks together: without pads,
// so 4 x num_parameters x (1 + moments) whatever layout writes it. Names and checksums come on top.
index_t checkpoint_bytes(const Plan& plan);

// The same figures for all replicas of one place of tp and pp: what they have alike, and how
// ZeRO-1 cuts it over all of them, is computed once.
class PlaceMemory {
 public:
  // `plan` must outlive it.
  PlaceMemory(const Plan& plan, index_t tp_rank, index_t pp_rank);

  RankMemory of(index_t dp_rank) const;
  index_t optimizer_elements(index_t dp_rank) const;

 private:
  const Plan& plan_;
  index_t stored_ = 0;            // elements of all parameters
  index_t summed_by_blocks_ = 0;  // those summed by token blocks
  index_t largest_ = 0;           // of one parameter of the others
  index_t copied_ = 0;            // elements of the tied table's second use
  index_t token_blocks_ = 0;      // that the rank sums
  std::vector<index_t> shares_;   // with ZeRO-1: elements of each dp rank
  std::vector<index_t> staged_;   // with copies for checkpoints: elements of one kind, by dp rank
};

}  // namespace weft
