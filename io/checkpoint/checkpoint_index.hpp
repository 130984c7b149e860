// What is where in a checkpoint: its tensors, the pieces that make them up, the files, the blocks
// by which every byte is checked; and the run's place in training. index.h5 holds it (FORMAT.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shard_spec.hpp"

namespace weft {

// One tensor of one kind: a parameter's value, or a moment of the optimizer.
struct TensorRecord {
  std::string name;  // "block.0.q.weight"
  std::string kind;  // "value", "exp_avg"
  std::string dtype = "f32";
  Shape global = {};
  std::uint64_t fingerprint = 0;  // core/fingerprint.hpp, of the whole tensor
  friend bool operator==(const TensorRecord&, const TensorRecord&) = default;
};

// A stretch of a file and its checksum (XXH3, 64 bits). A file's blocks follow one another from its
// first byte to its last.
struct BlockRecord {
  static constexpr index_t most_bytes = 64 * 1024;
  static constexpr index_t most_elements = most_bytes / index_t{sizeof(float)};
  std::uint64_t offset = 0;
  std::uint64_t num_bytes = 0;
  std::uint64_t checksum = 0;
  friend bool operator==(const BlockRecord&, const BlockRecord&) = default;
};
std::uint64_t block_checksum(const void* bytes, std::size_t size);

// A box of a tensor that lies in one file in one stretch, row-major. Its blocks are its own: none
// holds a byte of anything else; all but the last have most_bytes.
struct PieceRecord {
  index_t tensor = 0;
  index_t file = 0;
  Box box = {};
  index_t first_block = 0;  // in CheckpointIndex::blocks
  friend bool operator==(const PieceRecord&, const PieceRecord&) = default;
};

// Blocks that the elements of a box fill.
index_t num_blocks(const Box& box);
// The blocks of a piece: all, and those that hold some of its `elements` (row-major, not empty).
// The elements that one of its blocks holds.
Range blocks_of(const PieceRecord& piece);
Range blocks_of(const PieceRecord& piece, Range elements);
Range elements_of(const PieceRecord& piece, index_t block);

struct FileRecord {
  std::string name;  // "shard-00003.h5"
  std::uint64_t num_bytes = 0;
  Range blocks = {};  // in CheckpointIndex::blocks
  friend bool operator==(const FileRecord&, const FileRecord&) = default;
};

// Where the run is. Nothing else of it is state: random numbers and the order of samples are
// functions of the plan and of the step.
struct RunProgress {
  index_t step = 0;            // steps done
  index_t epoch = 0;           // of the last step done
  std::vector<double> losses;  // of all steps from the first on; NaN: skipped
};
// Bit for bit, so that a skipped step's loss equals itself.
bool operator==(const RunProgress& a, const RunProgress& b);
bool have_same_bits(const std::vector<double>& a, const std::vector<double>& b);

// Texts that say what the state belongs to.
struct RunIdentity {
  std::string plan;       // the resolved plan, TOML
  std::string plan_hash;  // of what decides the result
  std::string split;      // record of the data split, JSON
  std::string data;       // fingerprint of the data set's files
  std::string numerics;   // fingerprint of libraries, CPU and build
  friend bool operator==(const RunIdentity&, const RunIdentity&) = default;
};

struct CheckpointIndex {
  std::string id;  // 32 hexadecimal digits, another one for each save
  RunProgress progress;
  RunIdentity identity;
  std::vector<TensorRecord> tensors;
  std::vector<PieceRecord> pieces;  // grouped by tensor, in increasing order
  std::vector<FileRecord> files;
  std::vector<BlockRecord> blocks;
  friend bool operator==(const CheckpointIndex&, const CheckpointIndex&) = default;

  index_t num_elements() const;
  // Hash of names, kinds, shapes and fingerprints of all tensors: the same for the same state on
  // every layout.
  std::string state_fingerprint() const;
};

// The bytes of index.h5. `encode` needs a consistent index.
std::string encode(const CheckpointIndex& index);

// Throws Error(data) that names `path` and the fault where the bytes (verified before) are not a
// consistent index: every piece inside its tensor and its file, its blocks covering it exactly, the
// pieces of each tensor covering it without overlap, each file's blocks covering it without gap.
CheckpointIndex decode_index(std::string bytes, const std::string& path);

}  // namespace weft
