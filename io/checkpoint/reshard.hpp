// The same state in other shards: a checkpoint becomes one that another layout would have written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/reshard_writer.hpp"

namespace weft {

// Copies `source` to `place`, cut as `shards` says. Every byte of the source is verified before it
// is used, those that are no tensor's, too; the source is only read. The new one has the same step,
// losses, plan and state_fingerprint, and another id. A few MiB of memory beside the index. Throws
// Error(data) where the source is damaged, else as write_checkpoint().
CheckpointIndex reshard(
    const Checkpoint& source, const std::vector<ShardCut>& shards, const ManifestTexts& texts,
    const NewPlace& place,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& progress = nullptr);

}  // namespace weft
