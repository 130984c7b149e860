#include "io/checkpoint/checkpoint_save.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "core/drill_point.hpp"
#include "core/error.hpp"
#include "io/checkpoint/index_file.hpp"
#include "io/checkpoint/shard_format.hpp"
#include "io/checkpoint/shard_record.hpp"
#include "io/checkpoint/verify.hpp"

namespace weft {

namespace {

double seconds_between(std::chrono::steady_clock::time_point begin,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
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

double SaveResult::work_s() const {
  double seconds = 0.0;
  for (const Work& one : work) seconds += one.seconds();
  return seconds;
}

const char* CheckpointSave::name_of(Stage stage) {
  static constexpr std::array<const char*, 6> names = {"write",     "commit", "confirm",
                                                       "read_back", "retire", "over"};
  return names[static_cast<std::size_t>(stage)];
}

CheckpointSave::CheckpointSave(Communicator& world, const CheckpointOptions& options,
                               const RunIdentity& identity, ShardWriter& shard,
                               RunProgress progress)
    : world_(world),
      options_(options),
      identity_(identity),
      shard_(shard),
      progress_(std::move(progress)) {
  result_.step = progress_.step;
  result_.path = options_.folder + "/" + step_folder_name(progress_.step);
}

void CheckpointSave::begin(const LocalState& state, const FlatRanges& share) {
  const bool is_ready =
      choose_id() && all_could("prepare", [&] { prepare(state, share); }) && stage();
  if (is_ready) {
    stage_ = Stage::write;
  } else {
    be_over();
  }
}

void CheckpointSave::work(const std::stop_token& stop, WorkPace* pace) {
  const auto begin = Clock::now();
  const double rested_before_s = pace ? pace->rested_s() : 0.0;
  if (pace) pace->begin();
  my_fault_ = fault_of([&] {
    drill::reach_stage(name_of(stage_), false);
    switch (stage_) {
      case Stage::write:
        record_ = shard_.write(StagingFolder::path_of(options_.folder, progress_.step, id_),
                               shard_name(world_.rank()), stop, pace);
        break;
      case Stage::commit:
        if (is_first()) commit();
        break;
      case Stage::confirm:
        if (is_first()) staging_->confirm();
        break;
      case Stage::read_back:
        verify_shard(result_.path, record_, stop, pace);
        break;
      case Stage::retire:
        if (is_first()) retire_older(options_.folder, progress_.step, options_.retention);
        break;
      case Stage::over:
        break;
    }
  });
  drill::reach_stage(name_of(stage_), true);
  const double rest_s = pace ? pace->rested_s() - rested_before_s : 0.0;
  result_.work.push_back({name_of(stage_), begin, Clock::now(), rest_s});
}

// The commit itself stands, whatever comes of the stages after it.
void CheckpointSave::end_stage() {
  const bool is_done = all_could(name_of(stage_), std::exchange(my_fault_, ""));
  Stage next = Stage::over;
  switch (stage_) {
    case Stage::write:
      if (!is_done) break;
      packed_ = world_.gather_strings("checkpoint.shards", 0, pack(record_));
      next = Stage::commit;
      break;
    case Stage::commit:
      result_.is_saved = is_done;
      if (is_done) next = Stage::confirm;
      break;
    case Stage::confirm:
      result_.write_s = seconds_between(begin_, committed_ = Clock::now());
      if (is_done) next = options_.read_back ? Stage::read_back : Stage::retire;
      if (!is_done)
        result_.fault =
            "it is in place, but the disk did not confirm that, so that a power cut could "
            "take it; older ones stay. " +
            result_.fault;
      break;
    case Stage::read_back:
      result_.verify_s = seconds_between(committed_, Clock::now());
      if (is_done) next = Stage::retire;
      if (!is_done)
        result_.fault =
            "the checkpoint does not read back as it was written, so older ones stay: " +
            result_.fault;
      break;
    case Stage::retire:
    case Stage::over:
      break;
  }
  stage_ = next;
  if (is_over()) be_over();
}

void CheckpointSave::be_over() {
  stage_ = Stage::over;
  staging_.reset();
  if (result_.write_s == 0.0) result_.write_s = seconds_between(begin_, Clock::now());
}

// Collective. True where no rank failed; else the first fault is in the result on all ranks.
bool CheckpointSave::all_could(const std::string& what, const std::string& my_fault) {
  const auto faults = world_.all_gather_strings("checkpoint." + what, my_fault);
  for (std::size_t rank = 0; rank < faults.size(); ++rank) {
    if (faults[rank].empty()) continue;
    result_.fault = fmt::format("rank {}: {}", rank, faults[rank]);
    return false;
  }
  return true;
}

bool CheckpointSave::all_could(const std::string& what, const std::function<void()>& body) {
  drill::reach_stage(what, false);
  const std::string my_fault = fault_of(body);
  drill::reach_stage(what, true);
  return all_could(what, my_fault);
}

bool CheckpointSave::choose_id() {
  if (!all_could("id", [&] { id_ = is_first() ? new_checkpoint_id() : ""; })) return false;
  id_ = world_.broadcast_string("checkpoint.id", 0, id_);
  return true;
}

void CheckpointSave::prepare(const LocalState& state, const FlatRanges& share) {
  shard_.plan(state, share, shard_root(id_, progress_.step));
  my_bytes_ = shard_.num_bytes();
}

// Room and a staging folder, made by one rank.
bool CheckpointSave::stage() {
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

void CheckpointSave::commit() {
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

}  // namespace weft
