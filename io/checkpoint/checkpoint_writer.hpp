// Saves a run's state: all ranks write their shards, all learn whether all could, one commits. A
// fault of any rank leaves the folder as it was, and the run goes on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/flat_ranges.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/checkpoint/checkpoint_index.hpp"
#include "io/checkpoint/local_state.hpp"
#include "io/checkpoint/manifest.hpp"
#include "io/checkpoint/shard_writer.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

struct CheckpointOptions {
  std::string folder;  // RUN/checkpoints; exists; this run holds its lease
  index_t keep = 2;    // newest ones that stay
  // Read the new one back from the disk and compare, before an older one goes.
  bool read_back = true;
  // What the manifest tells people.
  std::string program;
  std::string plan_name;
  std::string layout;
};

struct SaveResult {
  bool is_saved = false;
  // What went wrong, if anything: of a checkpoint that is saved, that the disk did not confirm it,
  // that it does not read back as it was written, or that older ones could not be removed.
  std::string fault;
  std::string path;             // where it is, or would be
  std::uint64_t num_bytes = 0;  // of all shards
  double write_s = 0.0;         // until the commit
  double verify_s = 0.0;
};

// Removes what is older than the `keep` newest checkpoints up to step `newest`, which is known to
// be sound; those that do not open are not counted, pinned ones (PINS) stay. Only for the holder of
// the lease. Throws Error(failed), and Error(data) where PINS cannot be read: then nothing goes.
void retire_older(const std::string& folder, index_t newest, index_t keep);

class CheckpointWriter {
 public:
  // `identity` matters on rank 0 alone. `world` must outlive it.
  CheckpointWriter(Communicator& world, CheckpointOptions options, RunIdentity identity);

  // Collective over the world. `share`: what this rank writes of every kind; the shares of all
  // ranks make up everything once. Never throws for what a disk does: that is in the result, the
  // same on all ranks.
  SaveResult save(const LocalState& state, const FlatRanges& share, const RunProgress& progress);

 private:
  class Save;

  Communicator& world_;
  CheckpointOptions options_;
  RunIdentity identity_;
  ShardWriter shard_;  // its plan is the next save's
};

}  // namespace weft
