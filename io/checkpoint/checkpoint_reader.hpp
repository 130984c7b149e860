// Opens a checkpoint and reads it, each byte verified before anything believes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/checkpoint_index.hpp"
#include "io/checkpoint/manifest.hpp"

namespace weft {

inline constexpr const char* manifest_name = "MANIFEST";
inline constexpr const char* index_name = "index.h5";

// A checkpoint whose manifest and index are whole and belong together, and whose files are all
// there with their sizes. What is in the shards is verified by those who read it.
struct Checkpoint {
  std::string path;
  Manifest manifest;
  CheckpointIndex index;

  std::string file_path(index_t file) const {
    return path + "/" + index.files[static_cast<std::size_t>(file)].name;
  }
  const FileRecord& file_of(const PieceRecord& piece) const {
    return index.files[static_cast<std::size_t>(piece.file)];
  }
  const TensorRecord& tensor_of(const PieceRecord& piece) const {
    return index.tensors[static_cast<std::size_t>(piece.tensor)];
  }
};

// Local. Throws Error(data) that names the file and what is wrong with it.
Checkpoint open_checkpoint(const std::string& path);

// In two steps, for one rank that reads and others that are told: manifest and the bytes of the
// index, verified, and a checkpoint out of them.
struct CheckpointTexts {
  Manifest manifest;
  std::string index;  // bytes of index.h5
};
CheckpointTexts read_checkpoint_texts(const std::string& path);
Checkpoint make_checkpoint(const std::string& path, CheckpointTexts texts);

// Blocks of a file that follow one another: of one piece, or of the file's own structure.
struct FileBlocks {
  static constexpr index_t structure = -1;
  index_t file = 0;           // in the index, as the following
  index_t piece = structure;  // which they are of
  Range blocks;
};

std::span<const BlockRecord> blocks_in(const CheckpointIndex& index, Range blocks);
// The pieces that lie in a file, by the order of their blocks; and the blocks that are no piece's.
std::vector<const PieceRecord*> pieces_in(const CheckpointIndex& index, index_t file);
std::vector<FileBlocks> structure_in(const CheckpointIndex& index, index_t file);

// Reads `wanted` in order, some MiB ahead of the caller on a thread, verifies every block, and
// calls
//   use(piece number, elements of the piece, their bits)
// for each that is of a piece. Returns the bytes of those. Throws Error(data) that names file,
// block and tensor where a block is not what was written.
using UsePiece = std::function<void(index_t piece, Range elements, const std::uint32_t* bits)>;
std::uint64_t read_verified(const Checkpoint& checkpoint, const std::vector<FileBlocks>& wanted,
                            const UsePiece& use);

// Whether a block's bytes are those that were written; the same, or Error(data) by block_fault().
bool is_unaltered(const BlockRecord& block, std::span<const std::byte> bytes);
void require_unaltered(const Checkpoint& checkpoint, index_t file, index_t block,
                       std::span<const std::byte> bytes);

// What is wrong with a block, for people: "shard-00001.h5, block 17 (bytes 1048576 to 1114111,
// block.0.up.weight value): its checksum is not that of what was written".
std::string block_fault(const Checkpoint& checkpoint, index_t file, index_t block);

}  // namespace weft
