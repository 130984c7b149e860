// A checkpoint that one process writes, from tensors that lie anywhere: in another checkpoint, in a
// file of another format. By the protocol of a save: staging, read back, one rename.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/checkpoint/index_file.hpp"
#include "io/checkpoint/reshard_cut.hpp"

namespace weft {

// Fills `out` with a box of a tensor, row by row; asked for boxes of at most 4 MiB.
using ReadBox = std::function<void(index_t tensor, const Box& box, std::uint32_t* out)>;

struct NewCheckpoint {
  ManifestTexts texts;
  RunProgress progress;
  RunIdentity identity;
  // Fingerprints are of what `read` is to give, where they are known.
  std::vector<TensorRecord> tensors;
  bool knows_fingerprints = false;
  ReadBox read;
};

// Where a new checkpoint is to be: a folder that does not exist, in one that is made if need be. As
// one of a run's steps it has the step's name, and its run's lease is held meanwhile.
class NewPlace {
 public:
  // Throws Error(usage) where something is there already, where the name is that of another step,
  // where it would lie in a checkpoint, or where a run writes to the folder.
  NewPlace(const std::string& path, index_t step);

  const std::string& parent() const { return parent_; }
  const std::string& name() const { return name_; }
  std::string path() const { return parent_ + "/" + name_; }

 private:
  std::string parent_;
  std::string name_;
  std::unique_ptr<Lease> lease_;
};

// Writes it, a shard for each of `shards`, in windows of some MiB; reads every byte back; then it
// appears by one rename, or nothing does. Returns its index. Throws what `read` throws;
// Error(failed) where the system refuses; Error(data) where what was written is not what was read,
// or not what the fingerprints say. Where the disk does not confirm the rename it is there all the
// same, and Error(failed) says so. `progress`: called with the bytes of tensors written so far and
// in all.
CheckpointIndex write_checkpoint(
    const NewCheckpoint& checkpoint, const std::vector<ShardCut>& shards, const NewPlace& place,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& progress = nullptr);

}  // namespace weft
