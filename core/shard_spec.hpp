// Which part of a global tensor a rank holds: the one language of layout for layers, hashes, norms
// and checkpoints. A tensor has one or two dims; at most one of them is cut, in `num_shards` pieces
// by the range rule. A rank holds consecutive pieces, each a dense block of its own:
//
//   [6, 8] cut along dim 1 in 4, a rank that owns pieces 1 and 2:
//       global           local storage
//     | 0 | 1 | 2 | 3 |    [6, 2] of piece 1, then, on the next multiple of 64 elements,
//     |   | # | # |   |    [6, 2] of piece 2
//
// A block's offset is aligned alike on every layout, so that library calls see the same arguments.
// The cut dim may be padded (10 classes to 12): pads belong to no one's hash, norm or checkpoint.
#pragma once

#include <string>

#include "core/range.hpp"
#include "core/shape.hpp"

namespace weft {

// A box of a tensor of two dims: rows x cols.
struct Box {
  Range rows;
  Range cols;
  index_t num_elements() const { return rows.size() * cols.size(); }
  friend bool operator==(const Box&, const Box&) = default;
};

// All of a tensor of one or two dims; one of one dim is one row.
Box whole_box(const Shape& shape);

class ShardSpec {
 public:
  static constexpr index_t block_alignment = 64;  // elements

  ShardSpec() = default;
  // Every rank holds all of it.
  static ShardSpec replicated(const Shape& global);
  // Cut along `dim`, whose extent is first padded to `padded_extent` (>= the extent).
  static ShardSpec cut(const Shape& global, int dim, index_t padded_extent, index_t num_shards,
                       Range owned);

  const Shape& global() const { return global_; }  // without pads
  bool is_replicated() const { return dim_ < 0; }
  int dim() const { return dim_; }  // -1 where replicated
  index_t padded_extent() const { return padded_; }
  index_t num_shards() const { return num_shards_; }
  Range owned() const { return owned_; }

  // Indices of the cut dim in piece `shard`, pads included.
  Range piece(index_t shard) const { return part_of(shard, num_shards_, padded_); }
  // What piece `shard` stores, pads included; a tensor of one dim is one row.
  Box block(index_t shard) const;
  // block() without pads. Pads are its last rows or columns.
  Box valid(index_t shard) const;
  // Where piece `shard` (owned) begins in local storage, in elements.
  index_t offset(index_t shard) const;
  // Elements of local storage, gaps included.
  index_t local_elements() const;
  // Elements that are held and not pads.
  index_t held_elements() const;

  std::string text() const;  // "[768, 3072] dim 1 in 4, pieces 0-1"

 private:
  Shape global_;
  int dim_ = -1;
  index_t padded_ = 0;
  index_t num_shards_ = 1;
  Range owned_{0, 1};
};

}  // namespace weft
