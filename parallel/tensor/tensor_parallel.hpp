// The tensor-parallel axis as layers see it: which pieces this rank owns, and the four crossings in
// conjugate pairs (Shoeybi et al., "Megatron-LM", 2019, section 3):
//
//   forward            backward             used by
//   copy  (nothing)    reduce (sum)         column-parallel linear's input
//   reduce (sum)       copy  (nothing)      row-parallel linear's output
//   split (own part)   gather               features of a replicated input
//   gather             split                (sequence parallel and vocabulary come with their
//   layers)
//
// A sum is over pieces, not over ranks: each piece is a leaf of the tree (EXACT 3.1), so the bits
// do not depend on how many ranks there are. A group of one does the same, without messages.
#pragma once

#include <functional>
#include <string_view>

#include "core/context.hpp"
#include "core/tensor.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

class TensorParallel {
 public:
  // `order`: Order::tree in exact mode; Order::any needs one piece a rank.
  TensorParallel(Communicator& axis, index_t num_pieces, Order order);

  index_t num_pieces() const { return num_pieces_; }
  Range owned() const { return owned_; }
  Communicator& axis() const { return axis_; }

  // Writes leaf `piece` to device memory of the agreed shape: one library call, beta = 0.
  using Leaf = std::function<void(index_t piece, float* out)>;

  // Collective over tp. The sum of the leaves of all pieces, on every rank. `name` is that of the
  // crossing, as "block.0.down.forward.reduce".
  Tensor reduce(Context& context, std::string_view name, const Shape& shape, const Leaf& leaf);

  // Collective over tp. `records` [rows, owned pieces, record_length] f32, this rank's part of
  // [rows, num_pieces, record_length], which every rank gets.
  Tensor gather_pieces(Context& context, std::string_view name, const Tensor& records,
                       index_t num_rows, index_t record_length);

  // Local. The owned column pieces of a replicated x [num_rows, num_cols], each a dense block, laid
  // out as `ShardSpec::cut` of the same shape says.
  Tensor split_columns(Context& context, const Tensor& x, index_t num_rows, index_t num_cols);

 private:
  Communicator& axis_;
  index_t num_pieces_;
  Order order_;
  Range owned_;
};

}  // namespace weft
