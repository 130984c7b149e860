#include "parallel/data/grad_sync.hpp"

#include <cassert>
#include <utility>

#include "core/kernels/elementwise.hpp"
#include "parallel/comm/reduce_nodes.hpp"

namespace weft {

GradSync::GradSync(ParameterSet& parameters, Communicator& dp, index_t num_lanes,
                   index_t microbatches_per_lane, Order order)
    : parameters_(parameters),
      dp_(dp),
      num_lanes_(num_lanes),
      microbatches_per_lane_(microbatches_per_lane),
      order_(order),
      lanes_(part_of(dp.rank(), dp.size(), num_lanes)),
      nodes_(num_lanes) {}

void GradSync::begin_lane(Context& context, index_t lane) {
  assert(lanes_.contains(lane) && lane_ < 0);
  lane_ = lane;
  // The merges that pushing this lane will cause: known now, the same for every parameter.
  merges_.clear();
  Range node{lane, lane + 1};
  for (auto left = nodes_.nodes().rbegin(); left != nodes_.nodes().rend(); ++left) {
    if (!reduce_tree::are_children(left->range, node, num_lanes_)) break;
    merges_.push_back(left->value.data());
    node.begin = left->range.begin;
  }

  if (!merges_.empty() && microbatches_per_lane_ == 1) {
    lane_gradient_ = Tensor(context.arena, MemoryKind::gradients, {parameters_.shared_elements()});
    parameters_.bind_gradients_to_one(lane_gradient_.data());
  } else {
    lane_gradient_ = Tensor(context.arena, MemoryKind::gradients, {parameters_.flat_elements()});
    parameters_.clear_gaps(lane_gradient_.data());
    parameters_.bind_gradients(lane_gradient_.data());
  }
}

void GradSync::ready(Context& context, const Parameter& parameter, index_t shard) {
  merge(context, parameter.gradient_of(shard), parameter.offset + parameter.spec.offset(shard),
        parameter.spec.block(shard).num_elements());
}

void GradSync::merge(Context& context, const float* leaf, index_t at, index_t n) {
  if (merges_.empty()) return;
  std::vector<float*> lefts;
  for (float* flat : merges_) lefts.push_back(flat + at);
  kernels::add_chain(context, leaf, lefts, n);
}

void GradSync::end_lane(Context& context) {
  const Range range = parameters_.token_block_range();
  parameters_.fold_partials(context);
  merge(context, parameters_.token_block_gradients(), range.begin, range.size());
  // All adding is done: what is left are the books.
  nodes_.push({lane_, lane_ + 1}, std::move(lane_gradient_),
              [](Tensor left, const Tensor&) { return left; });
  lane_gradient_ = Tensor();
  lane_ = -1;
}

void GradSync::finish(Context& context) {
  assert(lane_ < 0 && !nodes_.nodes().empty());
  const Tensor sum = reduce_nodes(context, dp_, "grad_sync.finish", order_, num_lanes_, nodes_);
  parameters_.bind_gradients(sum.data());
}

void GradSync::release() { nodes_.clear(); }

}  // namespace weft
