// Gradients on their way from a microbatch to the update (EXACT section 2, 3.2, 3.4, 3.15):
//
//   microbatches of a lane, in order, into the lane's own block           (layers: beta = 0, then
//   1)
//   -> token-block accumulators folded by their tree, at the lane's end   (here, end_lane())
//   -> lanes of this rank folded by the tree over lanes                   (here, ready(),
//   end_lane())
//   -> nodes of all ranks to the root, over dp                            (here, finish())
//
// Lanes come in index order, each whole before the next. A piece of a parameter is folded as soon
// as it is complete for the lane, while its gradient is still in cache; a lane of one microbatch
// that merges with its left neighbours at once needs no block of its own, only room for one
// parameter.
#pragma once

#include <vector>

#include "core/context.hpp"
#include "core/parameter.hpp"
#include "core/reduce_tree.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

class GradSync {
 public:
  // `num_lanes`: of the plan, of which this rank owns part_of(dp rank). `order`: Order::any needs
  // one lane a rank.
  GradSync(ParameterSet& parameters, Communicator& dp, index_t num_lanes,
           index_t microbatches_per_lane, Order order);

  Range lanes() const { return lanes_; }

  // Local. Binds the parameters' gradients to the lane's own memory.
  void begin_lane(Context& context, index_t lane);
  // Local. Piece `shard` of `parameter` (GradientRows::all) has its gradient from the last
  // microbatch of the lane.
  void ready(Context& context, const Parameter& parameter, index_t shard);
  // Local. Every piece of every parameter with GradientRows::all was ready once.
  void end_lane(Context& context);

  // Collective over dp. Afterwards the parameters' gradients are those of the whole step.
  void finish(Context& context);
  // Local. Gives the gradients' memory back: after the update.
  void release();

 private:
  // Adds `leaf`, elements [at, at + n) of the lane's flat gradient, to the nodes it merges with.
  void merge(Context& context, const float* leaf, index_t at, index_t n);

  ParameterSet& parameters_;
  Communicator& dp_;
  index_t num_lanes_;
  index_t microbatches_per_lane_;
  Order order_;
  Range lanes_;
  index_t lane_ = -1;
  Tensor lane_gradient_;
  // Flat blocks of the nodes that the lane under way will be merged with, innermost first.
  std::vector<float*> merges_;
  reduce_tree::Stack<Tensor> nodes_;
};

}  // namespace weft
