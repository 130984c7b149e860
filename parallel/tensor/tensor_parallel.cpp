#include "parallel/tensor/tensor_parallel.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>
#include <vector>

#include "core/kernels/elementwise.hpp"
#include "core/reduce_tree.hpp"
#include "core/shard_spec.hpp"
#include "parallel/comm/reduce_nodes.hpp"

namespace weft {

TensorParallel::TensorParallel(Communicator& axis, index_t num_pieces, Order order,
                               const TokenBlocks& tokens)
    : axis_(axis),
      num_pieces_(num_pieces),
      order_(order),
      tokens_(tokens),
      owned_(part_of(axis.rank(), axis.size(), num_pieces)) {
  assert(!tokens.sequence_parallel || tokens.count >= axis.size());
}

Range TensorParallel::token_blocks_of(int rank) const {
  if (!tokens_.sequence_parallel) return {0, tokens_.count};
  return part_of(rank, axis_.size(), tokens_.count);
}

Range TensorParallel::rows_of(int rank, index_t num_rows) const {
  const Range blocks = token_blocks_of(rank);
  return {part_of(blocks.begin, tokens_.count, num_rows).begin,
          part_of(blocks.end - 1, tokens_.count, num_rows).end};
}

std::vector<index_t> TensorParallel::row_cuts(index_t num_rows) const {
  std::vector<index_t> cuts{0};
  for (int rank = 0; rank < axis_.size(); ++rank) cuts.push_back(rows_of(rank, num_rows).end);
  return cuts;
}

Rows TensorParallel::owned_rows(index_t num_rows) const {
  return {num_rows, rows_of(axis_.rank(), num_rows), tokens_.sequence_parallel};
}

void TensorParallel::push_leaf(Context& context, reduce_tree::Stack<Tensor>& nodes, index_t piece,
                               Tensor leaf) const {
  // All merges that it causes in one pass over memory.
  std::vector<float*> lefts;
  for (const auto* left : nodes.merges_of({piece, piece + 1})) lefts.push_back(left->value.data());
  kernels::add_chain(context, leaf.data(), lefts, leaf.num_elements());
  nodes.push_merged({piece, piece + 1}, std::move(leaf));
}

Tensor TensorParallel::reduce(Context& context, std::string_view name, const Rows& rows, index_t n,
                              const Leaf& leaf) {
  const Shape shape{rows.total, n};
  reduce_tree::Stack<Tensor> nodes(num_pieces_);
  // Leaves in waves of one per thread, so that no more than a wave and the open nodes are in
  // memory.
  const index_t wave = context.device.num_threads();
  std::vector<Tensor> leaves;
  for (index_t first = owned_.begin; first < owned_.end; first += wave) {
    const index_t count = std::min(wave, owned_.end - first);
    leaves.clear();
    for (index_t i = 0; i < count; ++i)
      leaves.emplace_back(context.arena, MemoryKind::activations, shape);
    context.device.host_tasks("weft/leaves", count, [&](index_t i) {
      leaf(first + i, leaves[static_cast<std::size_t>(i)].data());
    });
    for (index_t i = 0; i < count; ++i) {
      push_leaf(context, nodes, first + i, std::move(leaves[static_cast<std::size_t>(i)]));
    }
  }
  if (!rows.is_cut) return reduce_nodes(context, axis_, name, order_, num_pieces_, nodes);
  return reduce_scatter_nodes(context, axis_, name, order_, num_pieces_, nodes,
                              row_cuts(rows.total));
}

Tensor TensorParallel::gather_rows(Context& context, std::string_view name, const Tensor& x,
                                   const Rows& rows, index_t n) {
  if (!rows.is_cut || axis_.size() == 1) return x;
  Tensor all(context.arena, MemoryKind::activations, {rows.total, n});
  context.device.fence();
  HostMirror mine(x.raw(), x.num_bytes());
  HostMirror gathered = HostMirror::for_receiving(all.raw(), all.num_bytes());
  AllGather gather{.cuts = row_cuts(rows.total), .input = mine.data(), .output = gathered.data()};
  for (index_t& cut : gather.cuts) cut *= n * index_t{sizeof(float)};
  axis_.start({std::string(name), gather}).wait();
  gathered.to_device();
  return all;
}

Tensor TensorParallel::select_rows(Context& context, std::string_view name, const Rows& rows,
                                   Tensor mine) {
  reduce_tree::Stack<Tensor> one(axis_.size());
  one.push_merged({axis_.rank(), axis_.rank() + 1}, std::move(mine));
  if (!rows.is_cut) return reduce_nodes(context, axis_, name, order_, axis_.size(), one);
  return reduce_scatter_nodes(context, axis_, name, order_, axis_.size(), one,
                              row_cuts(rows.total));
}

Tensor TensorParallel::gather_pieces(Context& context, std::string_view name, const Tensor& records,
                                     index_t num_rows, index_t record_length) {
  if (axis_.size() == 1) return records;
  context.device.fence();
  HostMirror mine(records.raw(), records.num_bytes());
  // Rank by rank as they arrive: [rank][row][its pieces][record].
  AllGather gather{.cuts = {0}, .input = mine.data(), .output = nullptr};
  for (int rank = 0; rank < axis_.size(); ++rank) {
    const index_t pieces = part_of(rank, axis_.size(), num_pieces_).size();
    gather.cuts.push_back(gather.cuts.back() +
                          pieces * num_rows * record_length * index_t{sizeof(float)});
  }
  std::vector<float> arrived(static_cast<std::size_t>(num_rows * num_pieces_ * record_length));
  gather.output = arrived.data();
  axis_.start({std::string(name), gather}).wait();

  // Piece by piece in each row: [row][piece][record].
  std::vector<float> ordered(arrived.size());
  const float* from = arrived.data();
  for (int rank = 0; rank < axis_.size(); ++rank) {
    const Range pieces = part_of(rank, axis_.size(), num_pieces_);
    for (index_t row = 0; row < num_rows; ++row) {
      const index_t length = pieces.size() * record_length;
      std::copy(from, from + length,
                ordered.data() + (row * num_pieces_ + pieces.begin) * record_length);
      from += length;
    }
  }
  Tensor out(context.arena, MemoryKind::workspace, {num_rows, num_pieces_, record_length});
  copy_to_device(out.raw(), ordered.data(), out.num_bytes());
  return out;
}

Tensor TensorParallel::split_columns(Context& context, const Tensor& x, index_t num_rows,
                                     index_t num_cols) {
  const ShardSpec spec = ShardSpec::cut({num_rows, num_cols}, 1, num_cols, num_pieces_, owned_);
  Tensor out(context.arena, MemoryKind::activations, {spec.local_elements()});
  for (index_t piece = owned_.begin; piece < owned_.end; ++piece) {
    const Range cols = spec.piece(piece);
    kernels::take_columns(context, x.data(), num_cols, cols.begin, out.data() + spec.offset(piece),
                          num_rows, cols.size());
  }
  return out;
}

}  // namespace weft
