// Saves a run's state: all ranks write their shards, all learn whether all could, one commits. A
// fault of any rank leaves the folder as it was, and the run goes on. Either the caller waits for
// all of it, or for a copy of its state only, which a thread of each rank then writes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/arena.hpp"
#include "core/flat_ranges.hpp"
#include "io/checkpoint/checkpoint_save.hpp"
#include "io/checkpoint/local_state.hpp"
#include "io/checkpoint/shard_writer.hpp"
#include "io/checkpoint/staged_state.hpp"
#include "io/checkpoint/work_pace.hpp"
#include "io/checkpoint/work_thread.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

class CheckpointWriter {
 public:
  // `identity` matters on rank 0 alone. `world` must outlive it.
  CheckpointWriter(Communicator& world, CheckpointOptions options, RunIdentity identity);
  // Stops a save that is under way, as a fault elsewhere does: what it had not committed is
  // dropped. Waits for the disk, never for another rank.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Local, none being under way: which steps are how good (Retention), for the saves from now on.
  // Rank 0's counts.
  void set_ranked(std::vector<index_t> steps);

  // Collective over the world, none being under way. `share`: what this rank writes of every kind;
  // the shares of all ranks make up everything once. Never throws for what a disk does: that is in
  // the result, the same on all ranks.
  SaveResult save(const LocalState& state, const FlatRanges& share, const RunProgress& progress);

  // Collective, once, before the first start(): memory for copies of `share`, and a thread, which
  // keeps out of the way where the ranks of its host leave it no core. `state`'s parameters must
  // outlive the writer.
  void make_staging(Arena& arena, const LocalState& state, FlatRanges share);
  // Collective, none being under way. Copies the share of `state`, which may change from the return
  // on. A result where it failed at once, the same on all ranks; else poll() or wait() brings it.
  std::optional<SaveResult> start(const LocalState& state, const RunProgress& progress);
  bool is_under_way() const { return save_ != nullptr; }
  // Collective, between steps: a byte to every other rank while one is under way, else nothing.
  // Once all ranks' threads are done with a stage, the next one begins, or there is the result.
  std::optional<SaveResult> poll();
  // Collective, one being under way: until it is over. No thread rests meanwhile.
  SaveResult wait();
  // Local, one being under way: what its thread has rested so far, for the steps' sake.
  double rested_s() const { return pace_.rested_s() - rested_before_s_; }

 private:
  void choose_pace();
  void start_work();
  bool all_are_done();
  // Collective, all being done: the stage's end, and the next one's begin.
  void advance();
  SaveResult take_result();

  Communicator& world_;
  CheckpointOptions options_;
  RunIdentity identity_;
  ShardWriter shard_;  // its plan is the next save's
  std::optional<StagedState> staged_;
  std::unique_ptr<CheckpointSave> save_;  // under way
  WorkPace pace_;                         // the thread's
  double rested_before_s_ = 0.0;          // before the save under way
  std::optional<WorkThread> thread_;      // last: it uses all of the above until it has ended
};

}  // namespace weft
