#include "parallel/data/grad_sync.hpp"

#include <cassert>
#include <utility>

#include "core/kernels/elementwise.hpp"
#include "core/kernels/reduce.hpp"
#include "parallel/comm/reduce_nodes.hpp"

namespace weft {

GradSync::GradSync(const Context& context, ParameterSet& parameters, Communicator& tp,
                   Communicator& dp, const GradSyncOptions& options)
    : parameters_(parameters),
      tp_(tp),
      options_(options),
      lanes_(part_of(dp.rank(), dp.size(), options.num_lanes)),
      nodes_(options.num_lanes),
      transfers_(
          dp, parameters, make_buckets(flat_layout(parameters), options.bucket_bytes, dp.size()),
          {.num_leaves = options.num_lanes, .order = options.order, .scatter = options.zero == 1}) {
  assert(options.zero == 0 || options.zero == 1);
  [[maybe_unused]] const Range blocks = context.numerics.token_blocks;
  [[maybe_unused]] const index_t num_blocks = context.numerics.num_token_blocks;
  assert(blocks.size() == num_blocks || blocks == part_of(tp.rank(), tp.size(), num_blocks));
  if (options.zero == 0 || dp.size() == 1) {
    shares_.emplace_back(std::vector<Range>{{0, parameters.flat_elements()}});
    return;
  }
  for (int rank = 0; rank < dp.size(); ++rank)
    shares_.push_back(slices_of(transfers_.buckets(), rank));
  share_ = static_cast<std::size_t>(dp.rank());
}

const FlatRanges& GradSync::owned() const { return shares_[share_]; }

void GradSync::begin_lane(Context& context, index_t lane) {
  assert(lanes_.contains(lane) && lane_ < 0);
  lane_ = lane;
  if (tied_ != nullptr) tied_->begin_lane(context);
  // The merges that pushing this lane will cause: known now, the same for every parameter.
  merges_.clear();
  for (const auto* left : nodes_.merges_of({lane, lane + 1})) merges_.push_back(left->value.data());

  if (!merges_.empty() && options_.microbatches_per_lane == 1) {
    lane_gradient_ = Tensor(context.arena, MemoryKind::gradients, {parameters_.shared_elements()});
    parameters_.bind_gradients_to_one(lane_gradient_.data());
  } else {
    lane_gradient_ = Tensor(context.arena, MemoryKind::gradients, {parameters_.flat_elements()});
    parameters_.clear_gaps(lane_gradient_.data());
    parameters_.bind_gradients(lane_gradient_.data());
  }
  if (!is_last_lane()) return;
  // What end_lane() will leave: the nodes that this lane does not touch, and its own.
  std::vector<float*> after;
  for (const auto& left : nodes_.nodes()) after.push_back(left.value.data());
  after.resize(after.size() - merges_.size());
  after.push_back(merges_.empty() ? lane_gradient_.data() : merges_.back());
  transfers_.begin(std::move(after));
}

void GradSync::ready(Context& context, const Parameter& parameter, index_t shard) {
  if (tied_ != nullptr && &parameter == tied_->copy()) return;  // whole at the lane's end
  const index_t begin = parameter.offset + parameter.spec.offset(shard);
  const Range flat{begin, begin + parameter.spec.block(shard).num_elements()};
  add_to_nodes(context, parameter.gradient_of(shard), flat);
  if (is_last_lane()) transfers_.complete(context, flat);
}

void GradSync::add_to_nodes(Context& context, const float* leaf, Range flat) {
  if (merges_.empty()) return;
  lefts_.clear();
  for (float* node : merges_) lefts_.push_back(node + flat.begin);
  kernels::add_chain(context, leaf, lefts_, flat.size());
}

void GradSync::sum_token_blocks(Context& context) {
  const index_t num_blocks = context.numerics.num_token_blocks;
  const Range mine = context.numerics.token_blocks;
  if (mine.size() == num_blocks) return parameters_.fold_partials(context);
  // This rank's blocks to its nodes, then all ranks' nodes to the root, in one message.
  const index_t n = parameters_.token_block_range().size();
  if (n == 0) return;
  std::vector<float*> nodes;
  for (const Range node : reduce_tree::maximal_nodes(mine, num_blocks)) {
    float* rows = parameters_.partials() + (node.begin - mine.begin) * n;
    kernels::tree_fold_rows(context, rows, node.size(), n, rows);
    nodes.push_back(rows);
  }
  reduce_nodes(context, tp_, "grad_sync.token_blocks", options_.order, num_blocks, nodes, n);
  kernels::copy(context, nodes[0], parameters_.token_block_gradients(), n);
}

void GradSync::end_lane(Context& context) {
  if (is_last_lane()) transfers_.backward_done();
  sum_token_blocks(context);
  const Range flat = parameters_.token_block_range();
  add_to_nodes(context, parameters_.token_block_gradients(), flat);
  if (is_last_lane()) transfers_.complete(context, flat);
  // All adding is done: what is left are the books.
  nodes_.push_merged({lane_, lane_ + 1}, std::move(lane_gradient_));
  lane_gradient_ = Tensor();
  if (tied_ != nullptr) tied_->end_lane(context, lane_);
  lane_ = -1;
}

void GradSync::finish(Context& context) {
  assert(lane_ < 0 && !nodes_.nodes().empty());
  transfers_.finish(context);
  parameters_.bind_gradients(nodes_.nodes().front().value.data());
  if (tied_ != nullptr) tied_->finish(context);
}

void GradSync::publish(Context& context) {
  transfers_.publish(context, parameters_.values());
  if (tied_ != nullptr) tied_->publish(context);
}

void GradSync::release() {
  nodes_.clear();
  if (tied_ != nullptr) tied_->release();
}

TransferStatistics GradSync::statistics() const {
  TransferStatistics all = transfers_.statistics();
  if (tied_ == nullptr) return all;
  const TiedParameter::Statistics& tied = tied_->statistics();
  all.under_way_ns += tied.reduce_ns;
  all.exposed_ns += tied.reduce_ns;
  all.publish_ns += tied.publish_ns;
  all.bytes_sent += tied.reduce_bytes;
  return all;
}

}  // namespace weft
