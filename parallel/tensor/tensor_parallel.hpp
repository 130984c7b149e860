// The tensor-parallel axis as layers see it: which pieces and rows this rank owns, and the
// crossings in conjugate pairs (Shoeybi et al., "Megatron-LM", 2019, section 3; Korthikanti et al.,
// "Reducing activation recomputation in large transformer models", 2022, for the rows):
//
//   forward                backward               used by
//   copy    (nothing)      reduce  (sum)          column-parallel linear's input
//   reduce  (sum)          copy    (nothing)      row-parallel linear's output
//   gather  (all rows)     reduce to own rows     the same two with sequence parallel: what is
//   reduce to own rows     gather  (all rows)     between crossings works on own rows alone
//   split   (own part)     gather                 features of a replicated input
//   select  (owner's rows) gather (all rows)      rows of a table that is cut by rows
//
// A sum is over pieces, not over ranks: each piece is a leaf of the tree (EXACT 3.1), so the bits
// do not depend on how many ranks there are. A group of one does the same, without messages.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "core/context.hpp"
#include "core/reduce_tree.hpp"
#include "core/tensor.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/tensor/rows.hpp"

namespace weft {

// The parts in which rows of a microbatch are summed, and whether each tp rank works on the rows of
// its own ones only (sequence parallel).
struct TokenBlocks {
  index_t count = 1;
  bool sequence_parallel = false;
};

class TensorParallel {
 public:
  // `order`: Order::tree in exact mode; Order::any needs one piece a rank. With sequence parallel
  // there are at least as many token blocks as ranks.
  TensorParallel(Communicator& axis, index_t num_pieces, Order order,
                 const TokenBlocks& tokens = {});

  index_t num_pieces() const { return num_pieces_; }
  Range owned() const { return owned_; }
  Communicator& axis() const { return axis_; }
  // Those whose rows this rank works on: all without sequence parallel.
  Range owned_token_blocks() const { return token_blocks_of(axis_.rank()); }
  // What this rank holds of `num_rows` rows between two crossings.
  Rows owned_rows(index_t num_rows) const;

  // Local. Moves what is under way on any axis, neighbours' tensors and buckets of gradients, as
  // far as it goes without waiting: between layers, so that transfers hide behind computation.
  void poll() const { axis_.progress()->step_all(); }

  // Writes leaf `piece` to device memory of the agreed shape: one library call, beta = 0.
  using Leaf = std::function<void(index_t piece, float* out)>;

  // Collective over tp. The sum of the leaves of all pieces, each [rows.total, n]; this rank gets
  // `rows` of it, which are all or owned_rows(). `name` is that of the crossing, as
  // "block.0.down.forward.reduce".
  Tensor reduce(Context& context, std::string_view name, const Rows& rows, index_t n,
                const Leaf& leaf);

  // Collective over tp where rows are cut. x: `rows` of a tensor [rows.total, n], of which every
  // rank gets all rows. Returns x itself where it has them.
  Tensor gather_rows(Context& context, std::string_view name, const Tensor& x, const Rows& rows,
                     index_t n);

  // Collective over tp. `mine` [rows.total, n]: of each row one rank at most has the values, all
  // others +0; used up. This rank gets `rows` of them all. Sums with zeros round nothing, so a rank
  // is one leaf here, whatever its pieces; -0 becomes +0, but not in a group of one (EXACT 3.9).
  Tensor select_rows(Context& context, std::string_view name, const Rows& rows, Tensor mine);

  // Collective over tp. `records` [rows, owned pieces, record_length] f32, this rank's part of
  // [rows, num_pieces, record_length], which every rank gets.
  Tensor gather_pieces(Context& context, std::string_view name, const Tensor& records,
                       index_t num_rows, index_t record_length);

  // Local. The owned column pieces of a replicated x [num_rows, num_cols], each a dense block, laid
  // out as `ShardSpec::cut` of the same shape says.
  Tensor split_columns(Context& context, const Tensor& x, index_t num_rows, index_t num_cols);

 private:
  void push_leaf(Context& context, reduce_tree::Stack<Tensor>& nodes, index_t piece,
                 Tensor leaf) const;
  Range token_blocks_of(int rank) const;
  Range rows_of(int rank, index_t num_rows) const;
  // Where each rank's rows begin: size() + 1 positions.
  std::vector<index_t> row_cuts(index_t num_rows) const;

  Communicator& axis_;
  index_t num_pieces_;
  Order order_;
  TokenBlocks tokens_;
  Range owned_;
};

}  // namespace weft
