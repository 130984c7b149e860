#include "io/checkpoint/checkpoint_writer.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/drill_point.hpp"
#include "core/error.hpp"
#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/shard_record.hpp"
#include "io/checkpoint/shard_writer.hpp"
#include "io/checkpoint/verify.hpp"
#include "io/file.hpp"

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

std::string shard_name(int rank) { return fmt::format("shard-{:05}.h5", rank); }

void write_synced(const std::string& path, std::string_view bytes) {
  OutputFile file(path, OutputFile::Mode::create);
  file.write(bytes);
  file.sync();
  file.close();
}

}  // namespace

void retire_older(const std::string& folder, index_t newest, index_t keep) {
  index_t valid = 0;
  for (const CheckpointPlace& place : list_checkpoints(folder)) {
    if (place.step > newest) continue;
    if (valid >= keep) {
      remove_checkpoint(folder, place);
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
    drill::reach_stage(what, false);
    const std::string mine = fault_of(body);
    drill::reach_stage(what, true);
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
    const std::vector<hdf5::Attribute> root{
        {"format", std::string("weft-shard")},
        {"version", std::vector{Manifest::major_version, Manifest::minor_version}},
        {"id", id_},
        {"step", std::vector{static_cast<std::uint64_t>(progress_.step)}}};
    shard_.plan(state, share, root);
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
    const std::string index_bytes = encode(index);
    // Read as a resume will read it: what cannot be loaded must not be committed.
    decode_index(index_bytes, index_name);
    write_synced(staging_->path() + "/" + index_name, index_bytes);
    write_synced(staging_->path() + "/" + manifest_name, encode(manifest_of(index, index_bytes)));
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

  Manifest manifest_of(const CheckpointIndex& index, const std::string& index_bytes) const {
    Manifest manifest{
        .id = id_,
        .step = progress_.step,
        .written = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
        .program = options_.program,
        .plan_name = options_.plan_name,
        .plan_hash = identity_.plan_hash,
        .layout = options_.layout,
        .state_fingerprint = index.state_fingerprint(),
        .num_elements = static_cast<std::uint64_t>(index.num_elements()),
        .index_hash = hash128(index_bytes.data(), index_bytes.size()),
        .files = {{index_name, index_bytes.size()}}};
    for (const FileRecord& file : index.files)
      manifest.files.push_back({file.name, file.num_bytes});
    return manifest;
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
