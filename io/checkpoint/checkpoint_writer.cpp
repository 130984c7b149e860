#include "io/checkpoint/checkpoint_writer.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/index_file.hpp"
#include "io/checkpoint/pins.hpp"
#include "io/checkpoint/shard_format.hpp"
#include "io/checkpoint/shard_record.hpp"
#include "io/checkpoint/shard_writer.hpp"
#include "io/checkpoint/verify.hpp"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Empty, or what went wrong.
std::string fault_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

void retire_older(const std::string& folder, index_t newest, index_t keep) {
  index_t valid = 0;
  const std::set<index_t> pinned = pinned_steps(folder);
  for (const CheckpointPlace& place : list_checkpoints(folder)) {
    if (place.step > newest) continue;
    if (valid >= keep) {
      if (!pinned.contains(place.step)) remove_checkpoint(folder, place);
    } else if (fault_of([&] { read_checkpoint_texts(place.path); }).empty()) {
      ++valid;
    }
  }
}

CheckpointWriter::CheckpointWriter(Communicator& world, CheckpointOptions options,
                                   RunIdentity identity)
    : world_(world), options_(std::move(options)), identity_(std::move(identity)) {}

// One save. Its steps are collective, and each ends with all ranks knowing whether all have done
// it.
class CheckpointWriter::Save {
 public:
  Save(CheckpointWriter& writer, const RunProgress& progress)
      : options_(writer.options_),
        identity_(writer.identity_),
        world_(writer.world_),
        shard_(writer.shard_),
        progress_(progress) {
    result_.path = options_.folder + "/" + step_folder_name(progress.step);
  }

  SaveResult run(const LocalState& state, const FlatRanges& share) {
    const auto begin = Clock::now();
    result_.is_saved = write_all(state, share) && all_could("commit", [&] { commit(); });
    const bool confirmed = result_.is_saved && confirm();
    staging_.reset();
    result_.write_s = seconds_since(begin);
    if (confirmed) check_and_retire();
    return result_;
  }

 private:
  bool is_first() const { return world_.rank() == 0; }

  // Collective. True where no rank failed; else the first fault is in the result on all ranks.
  bool all_could(const std::string& what, const std::function<void()>& body) {
    const std::string mine = fault_of(body);
    const auto faults = world_.all_gather_strings("checkpoint." + what, mine);
    for (std::size_t rank = 0; rank < faults.size(); ++rank) {
      if (faults[rank].empty()) continue;
      result_.fault = fmt::format("rank {}: {}", rank, faults[rank]);
      return false;
    }
    return true;
  }

  // To where rank 0 has all that it needs for the commit.
  bool write_all(const LocalState& state, const FlatRanges& share) {
    if (!choose_id() || !all_could("prepare", [&] { prepare(state, share); }) || !stage() ||
        !all_could("write", [&] { write(); }))
      return false;
    packed_ = world_.gather_strings("checkpoint.shards", 0, pack(record_));
    return true;
  }

  bool choose_id() {
    if (!all_could("id", [&] { id_ = is_first() ? new_checkpoint_id() : ""; })) return false;
    id_ = world_.broadcast_string("checkpoint.id", 0, id_);
    return true;
  }

  void prepare(const LocalState& state, const FlatRanges& share) {
    shard_.plan(state, share, shard_root(id_, progress_.step));
    my_bytes_ = shard_.num_bytes();
  }

  // Room and a staging folder, made by one rank.
  bool stage() {
    const std::string_view mine(reinterpret_cast<const char*>(&my_bytes_), sizeof(my_bytes_));
    for (const std::string& text : world_.all_gather_strings("checkpoint.bytes", mine)) {
      std::uint64_t bytes = 0;
      std::memcpy(&bytes, text.data(), sizeof(bytes));
      result_.num_bytes += bytes;
    }
    return all_could("stage", [&] {
      if (!is_first()) return;
      const std::uint64_t free = free_bytes(options_.folder);
      require(free > result_.num_bytes, ExitCode::failed,
              fmt::format("a checkpoint of {} bytes does not fit {}, where {} bytes are free; free "
                          "some space",
                          result_.num_bytes, options_.folder, free));
      staging_.emplace(options_.folder, progress_.step, id_);
    });
  }

  void write() {
    record_ = shard_.write(StagingFolder::path_of(options_.folder, progress_.step, id_),
                           shard_name(world_.rank()));
  }

  void commit() {
    if (!is_first()) return;
    CheckpointIndex index;
    index.id = id_;
    index.progress = progress_;
    index.identity = identity_;
    std::vector<ShardRecord> shards;
    for (const std::string& bytes : packed_) shards.push_back(unpack_shard_record(bytes));
    join(index, shards);
    write_index(
        staging_->path(), index,
        {.program = options_.program, .plan_name = options_.plan_name, .layout = options_.layout});
    staging_->commit();
  }

  // The commit itself stands, whatever comes of this.
  bool confirm() {
    if (all_could("confirm", [&] {
          if (is_first()) staging_->confirm();
        }))
      return true;
    result_.fault =
        "it is in place, but the disk did not confirm that, so that a power cut could "
        "take it; older ones stay. " +
        result_.fault;
    return false;
  }

  // The new one is read back by those who wrote it; then older ones may go.
  void check_and_retire() {
    const auto begin = Clock::now();
    const bool is_sound =
        !options_.read_back || all_could("read_back", [&] { verify_shard(result_.path, record_); });
    result_.verify_s = seconds_since(begin);
    if (!is_sound) {
      result_.fault = "the checkpoint does not read back as it was written, so older ones stay: " +
                      result_.fault;
      return;
    }
    all_could("retire", [&] {
      if (is_first()) retire_older(options_.folder, progress_.step, options_.keep);
    });
  }

  const CheckpointOptions& options_;
  const RunIdentity& identity_;
  Communicator& world_;
  ShardWriter& shard_;
  const RunProgress& progress_;
  SaveResult result_;
  std::string id_;
  std::uint64_t my_bytes_ = 0;
  std::optional<StagingFolder> staging_;  // rank 0
  ShardRecord record_;
  std::vector<std::string> packed_;  // rank 0
};

SaveResult CheckpointWriter::save(const LocalState& state, const FlatRanges& share,
                                  const RunProgress& progress) {
  return Save(*this, progress).run(state, share);
}

}  // namespace weft
