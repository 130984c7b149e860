#include "parallel/data/grad_sync.hpp"

#include <cassert>
#include <utility>

#include "core/kernels/elementwise.hpp"

namespace weft {

GradSync::GradSync(ParameterSet& parameters, Communicator& dp, index_t num_lanes, Order order)
    : parameters_(parameters),
      dp_(dp),
      num_lanes_(num_lanes),
      order_(order),
      lanes_(part_of(dp.rank(), dp.size(), num_lanes)),
      nodes_(num_lanes) {}

void GradSync::begin_lane(Context& context, index_t lane) {
  assert(lanes_.contains(lane) && lane_ < 0);
  lane_ = lane;
  lane_gradient_ = Tensor(context.arena, MemoryKind::gradients, {parameters_.flat_elements()});
  parameters_.clear_gaps(lane_gradient_.data());
  parameters_.bind_gradients(lane_gradient_.data());

  // The merges that pushing this lane will cause: known now, the same for every parameter.
  merges_.clear();
  Range node{lane, lane + 1};
  for (auto left = nodes_.nodes().rbegin(); left != nodes_.nodes().rend(); ++left) {
    if (!reduce_tree::are_children(left->range, node, num_lanes_)) break;
    merges_.push_back(left->value.data());
    node.begin = left->range.begin;
  }
}

void GradSync::ready(Context& context, const Parameter& parameter) {
  parameters_.fold_partials(context, parameter);
  // left + (its left neighbour's sum so far), from the lane outwards; the sum ends in the leftmost.
  const float* sum = lane_gradient_.data() + parameter.offset;
  const index_t n = parameter.spec.local_elements();
  for (float* left : merges_) {
    float* into = left + parameter.offset;
    kernels::add(context, into, sum, into, n);
    sum = into;
  }
}

void GradSync::end_lane(Context&) {
  // ready() has done the adding: here only the books are kept.
  nodes_.push({lane_, lane_ + 1}, std::move(lane_gradient_), [](Tensor left, const Tensor&) { return left; });
  lane_gradient_ = Tensor();
  lane_ = -1;
}

void GradSync::finish(Context& context) {
  assert(lane_ < 0 && !nodes_.nodes().empty());
  Tensor& first = nodes_.nodes().front().value;
  if (dp_.size() > 1) {
    context.device.fence();
    std::vector<HostMirror> mirrors;
    for (const auto& node : nodes_.nodes()) mirrors.emplace_back(node.value.raw(), node.value.num_bytes());
    AllReduce sum{.order = order_,
                  .num_leaves = num_lanes_,
                  .count = parameters_.flat_elements(),
                  .inputs = {},
                  .output = mirrors[0].data()};
    for (auto& mirror : mirrors) sum.inputs.push_back(mirror.data());
    dp_.start({"grad_sync.finish", std::move(sum)}).wait();
    mirrors[0].to_device();
  }
  parameters_.bind_gradients(first.data());
}

void GradSync::release() { nodes_.clear(); }

}  // namespace weft
