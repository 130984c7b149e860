// One save, stage by stage: in each every rank does its part, then all agree on how it went. Where
// the part is done - by the caller while it waits, or by a thread - is the writer's choice, so that
// both kinds of saves are one protocol.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/flat_ranges.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/checkpoint/checkpoint_index.hpp"
#include "io/checkpoint/local_state.hpp"
#include "io/checkpoint/retention.hpp"
#include "io/checkpoint/shard_writer.hpp"
#include "io/checkpoint/work_pace.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

struct CheckpointOptions {
  std::string folder;        // RUN/checkpoints; exists; this run holds its lease
  Retention retention = {};  // once the new one is there
  // Read the new one back from the disk and compare, before an older one goes.
  bool read_back = true;
  // Of this rank, that compute; and whether its writer's thread, where no core is idle beside those
  // of all ranks, takes a share of one only, until it is waited for.
  int num_threads = 1;
  bool paces = true;
  // What the manifest tells people.
  std::string program;
  std::string plan_name;
  std::string layout;
};

struct SaveResult {
  // This rank's part of one stage.
  struct Work {
    const char* name;  // "write"
    std::chrono::steady_clock::time_point begin, end;
    double rest_s = 0.0;  // of that, for the steps' sake
    double seconds() const { return std::chrono::duration<double>(end - begin).count() - rest_s; }
  };

  bool is_saved = false;
  // What went wrong, if anything: of a checkpoint that is saved, that the disk did not confirm it,
  // that it does not read back as it was written, or that older ones could not be removed.
  std::string fault;
  index_t step = 0;
  std::string path;             // where it is, or would be
  std::uint64_t num_bytes = 0;  // of all shards
  double write_s = 0.0;         // until the commit
  double verify_s = 0.0;
  std::vector<Work> work = {};
  bool is_in_background = false;  // the work: a thread's

  double work_s() const;
};

class CheckpointSave {
 public:
  // What is referred to must outlive it, and `shard` is its own until it is over.
  CheckpointSave(Communicator& world, const CheckpointOptions& options, const RunIdentity& identity,
                 ShardWriter& shard, RunProgress progress);

  // Collective. An id, the shard's layout, room on the disk, a staging folder.
  void begin(const LocalState& state, const FlatRanges& share);
  // After begin(), and after each end_stage(); once it is, nothing of it is left to do.
  bool is_over() const { return stage_ == Stage::over; }
  // Local, by any thread while no other uses it: this rank's part of the stage. A fault is kept for
  // end_stage(), as is that a stop was asked for. `pace`: of the thread at work; null: no rests.
  void work(const std::stop_token& stop = {}, WorkPace* pace = nullptr);
  // Collective, when no rank is at work any more: all learn how it went. On to the next stage.
  void end_stage();

  // The same on all ranks, but for times.
  const SaveResult& result() const { return result_; }

 private:
  using Clock = std::chrono::steady_clock;
  enum class Stage : std::uint8_t { write, commit, confirm, read_back, retire, over };
  static const char* name_of(Stage stage);

  bool is_first() const { return world_.rank() == 0; }
  bool all_could(const std::string& what, const std::string& my_fault);
  bool all_could(const std::string& what, const std::function<void()>& body);
  bool choose_id();
  void prepare(const LocalState& state, const FlatRanges& share);
  bool stage();
  void commit();
  void be_over();

  Communicator& world_;
  const CheckpointOptions& options_;
  const RunIdentity& identity_;
  ShardWriter& shard_;
  const RunProgress progress_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point committed_;
  Stage stage_ = Stage::over;
  SaveResult result_;
  std::string my_fault_;  // of the stage under way
  std::string id_;
  std::uint64_t my_bytes_ = 0;
  std::optional<StagingFolder> staging_;  // rank 0
  ShardRecord record_;
  std::vector<std::string> packed_;  // rank 0
};

}  // namespace weft
