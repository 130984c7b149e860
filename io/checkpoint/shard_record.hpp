// What one rank wrote into its shard: what the rank that commits a checkpoint learns from each, and
// joins to the index.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_index.hpp"

namespace weft {

struct ShardRecord {
  struct Piece {
    std::string tensor;
    std::string kind;
    Shape global;
    Box box;
    std::uint64_t fingerprint = 0;  // of its elements, with their indices in the tensor
    index_t first_block = 0;        // in blocks
  };
  std::string name;
  std::uint64_t num_bytes = 0;
  std::vector<Piece> pieces = {};
  std::vector<BlockRecord> blocks = {};
};

// As bytes, for a message between ranks of one program. Unpacking throws Error(failed) where bytes
// are not what pack() makes; what it then gives is not checked further: that is the index's affair,
// once all are joined (index_check).
std::string pack(const ShardRecord& record);
ShardRecord unpack_shard_record(const std::string& bytes);

// Fills tensors, pieces, files and blocks. Tensors are sorted by name, then kind: the same on every
// layout.
void join(CheckpointIndex& index, const std::vector<ShardRecord>& shards);

}  // namespace weft
