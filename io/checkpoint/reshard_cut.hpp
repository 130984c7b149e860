// How tensors are dealt to the shards of a checkpoint, where no ranks are there to say so.
#pragma once

#include <string>
#include <vector>

#include "core/flat_ranges.hpp"
#include "core/parameter.hpp"
#include "io/checkpoint/checkpoint_index.hpp"

namespace weft {

// What lies in one shard.
struct ShardCut {
  struct Piece {
    index_t tensor;  // in a list of tensors, each of one kind
    Box box;         // not empty
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  std::vector<Piece> pieces;
  friend bool operator==(const ShardCut&, const ShardCut&) = default;
};

// As evenly as whole rows allow, in the order of `tensors`, one after the other: each shard has at
// most one box of a tensor. A tensor of one dim is cut where a block ends. With more shards than
// there is to cut some are empty. num_shards >= 1.
std::vector<ShardCut> cut_evenly(const std::vector<TensorRecord>& tensors, index_t num_shards);

// What one rank of a layout writes of every kind of each of its parameters' tensors. Throws
// Error(usage) where `tensors` has no tensor of that name, or has another shape.
ShardCut cut_of_rank(const std::vector<TensorRecord>& tensors, const ParameterSet& parameters,
                     const FlatRanges& share);

// Throws Error(usage) that names a tensor of which the shards have not each element once: then
// they are those of another model.
void require_whole(const std::vector<TensorRecord>& tensors, const std::vector<ShardCut>& shards);

}  // namespace weft
