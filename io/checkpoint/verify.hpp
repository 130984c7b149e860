// Every byte of a checkpoint against what was written: for `weft ckpt verify`, and for a new
// checkpoint before older ones go.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/shard_record.hpp"
#include "io/checkpoint/work_pace.hpp"

namespace weft {

// Reads the shard back, from the disk and not from memory where the system lets us choose. Throws
// Error(data) that names the first block that is not as the record says; Error(failed) where a stop
// is asked for on the way. `pace`, if any, is asked between two blocks.
void verify_shard(const std::string& folder, const ShardRecord& record,
                  const std::stop_token& stop = {}, WorkPace* pace = nullptr);

struct VerifyReport {
  std::uint64_t bytes_read = 0;
  index_t num_blocks = 0;
  index_t num_tensors = 0;
  std::vector<std::string> faults;  // each names file, block and tensor; the first `most_faults`
  std::uint64_t num_faults = 0;
};
inline constexpr std::size_t most_faults = 20;

// All blocks of all shards, and every tensor's fingerprint out of its pieces. `progress` is called
// with the bytes read so far and in all; may be null.
VerifyReport verify_checkpoint(
    const Checkpoint& checkpoint,
    const std::function<void(std::uint64_t done, std::uint64_t all)>& progress = nullptr);

}  // namespace weft
