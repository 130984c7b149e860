// Gradients on their way from a microbatch to the update (EXACT section 2, 3.2, 3.4, 3.15, 3.17):
//
//   microbatches of a lane, in order, into the lane's block    (layers: beta = 0, then 1)
//   -> token-block accumulators to their sum, at lane's end    (end_lane())
//   -> lanes of this rank folded by the tree over lanes        (ready(), end_lane())
//   -> nodes of all ranks to the root, over dp, by buckets     (BucketTransfers)
//   -> update of what is owned, values to all dp ranks         (optimizer; publish())
//
// Lanes come in index order, each whole before the next. A piece of a parameter is folded as soon
// as it is complete for the lane, while its gradient is still in cache; a lane of one microbatch
// that merges with its left neighbours at once needs no block of its own, only room for one
// parameter. In the rank's last lane a bucket leaves while earlier layers still compute.
#pragma once

#include <cstdint>
#include <vector>

#include "core/context.hpp"
#include "core/flat_ranges.hpp"
#include "core/parameter.hpp"
#include "core/reduce_tree.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/data/bucket_transfers.hpp"
#include "parallel/data/tied_parameter.hpp"

namespace weft {

struct GradSyncOptions {
  index_t num_lanes = 1;  // of the plan, of which this rank owns part_of(dp rank)
  index_t microbatches_per_lane = 1;
  // Order::any needs one lane a dp rank, and one token block a tp rank where those are divided.
  Order order = Order::tree;
  // 0: every dp rank gets the whole gradient and updates everything. 1: each its slices alone.
  index_t zero = 0;
  index_t bucket_bytes = index_t{4} << 20;
};

class GradSync {
 public:
  // After parameters.allocate(). Everything must outlive it. Token blocks that this rank sums
  // (context.numerics) are all of them, or those of part_of(tp rank).
  GradSync(const Context& context, ParameterSet& parameters, Communicator& tp, Communicator& dp,
           const GradSyncOptions& options);

  // From now on it does for `tied`, too, what a step needs, at the same calls. Before the first
  // lane, on all ranks alike; it must outlive them.
  void tie(TiedParameter& tied) { tied_ = &tied; }

  Range lanes() const { return lanes_; }
  // What each dp rank updates, by rank; with zero 0 one entry: everything, which all of them do.
  const std::vector<FlatRanges>& shares() const { return shares_; }
  // What this rank updates.
  const FlatRanges& owned() const;

  // Local. Binds the parameters' gradients to the lane's own memory.
  void begin_lane(Context& context, index_t lane);
  // Piece `shard` of `parameter` (GradientRows::all) has its gradient from the last microbatch of
  // the lane. Never waits. In the last lane it starts collectives over dp and moves what is under
  // way; pieces may come in any order, another one on each rank.
  void ready(Context& context, const Parameter& parameter, index_t shard);
  // Every piece of every parameter with GradientRows::all was ready once. Collective over tp where
  // token blocks are divided.
  void end_lane(Context& context);

  // Collective over dp, with a tied parameter over pp, too. Waits. Afterwards the parameters'
  // gradients are those of the whole step, as far as this rank owns them.
  void finish(Context& context);
  // Collective over dp, with a tied parameter over pp, too; after the update. Every rank gets the
  // values that others have updated.
  void publish(Context& context);
  // The step's gradient, one flat block, of which owned() is complete: after finish().
  const float* flat_gradient() const { return nodes_.nodes().front().value.data(); }
  // Local. Gives the gradients' memory back: after the update.
  void release();

  // Of the step that ended last, or of the one under way.
  TransferStatistics statistics() const;

 private:
  void add_to_nodes(Context& context, const float* leaf, Range flat);
  void sum_token_blocks(Context& context);
  bool is_last_lane() const { return lane_ + 1 == lanes_.end; }

  ParameterSet& parameters_;
  Communicator& tp_;
  GradSyncOptions options_;
  Range lanes_;
  std::vector<FlatRanges> shares_;
  std::size_t share_ = 0;  // this rank's
  index_t lane_ = -1;
  Tensor lane_gradient_;
  // Flat blocks of the nodes that the lane under way will be merged with, innermost first.
  std::vector<float*> merges_;
  std::vector<float*> lefts_;  // add_to_nodes: a place in each of them
  reduce_tree::Stack<Tensor> nodes_;
  BucketTransfers transfers_;
  TiedParameter* tied_ = nullptr;
};

}  // namespace weft
