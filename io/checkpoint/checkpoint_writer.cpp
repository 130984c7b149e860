#include "io/checkpoint/checkpoint_writer.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>
#include <vector>

#include "parallel/comm/core_use.hpp"

namespace weft {

namespace {

// Of a core, where there is none to spare. Steps end with the slowest rank: what two writers take
// on two cores at different times adds up. And a save takes ten times as long as it works, which is
// seconds.
constexpr double share_beside_steps = 0.1;

}  // namespace

CheckpointWriter::CheckpointWriter(Communicator& world, CheckpointOptions options,
                                   RunIdentity identity)
    : world_(world), options_(std::move(options)), identity_(std::move(identity)) {}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::set_ranked(std::vector<index_t> steps) {
  assert(!is_under_way());
  options_.retention.ranked = std::move(steps);
}

SaveResult CheckpointWriter::save(const LocalState& state, const FlatRanges& share,
                                  const RunProgress& progress) {
  assert(!is_under_way());
  CheckpointSave save(world_, options_, identity_, shard_, progress);
  save.begin(state, share);
  while (!save.is_over()) {
    save.work();
    save.end_stage();
  }
  return save.result();
}

void CheckpointWriter::make_staging(Arena& arena, const LocalState& state, FlatRanges share) {
  staged_.emplace(arena, state, std::move(share));
  choose_pace();
  thread_.emplace();
}

void CheckpointWriter::choose_pace() {
  std::vector<CoreUse> ranks;
  for (const std::string& text :
       world_.all_gather_strings("checkpoint.cores", CoreUse::mine(options_.num_threads).text()))
    ranks.push_back(CoreUse::from_text(text));
  const bool has_core = has_idle_core(ranks, static_cast<std::size_t>(world_.rank()));
  pace_.set_share(has_core || !options_.paces ? 1.0 : share_beside_steps);
}

std::optional<SaveResult> CheckpointWriter::start(const LocalState& state,
                                                  const RunProgress& progress) {
  assert(staged_ && !is_under_way());
  save_ = std::make_unique<CheckpointSave>(world_, options_, identity_, shard_, progress);
  save_->begin(staged_->state(), staged_->share());
  if (save_->is_over()) return take_result();
  staged_->copy_from(state);
  rested_before_s_ = pace_.rested_s();
  start_work();
  return std::nullopt;
}

void CheckpointWriter::start_work() {
  thread_->start([this](const std::stop_token& stop) { save_->work(stop, &pace_); });
}

std::optional<SaveResult> CheckpointWriter::poll() {
  if (!is_under_way() || !all_are_done()) return std::nullopt;
  advance();
  if (!save_->is_over()) return std::nullopt;
  return take_result();
}

SaveResult CheckpointWriter::wait() {
  assert(is_under_way());
  pace_.hurry();
  while (!save_->is_over()) {
    thread_->wait();
    advance();
  }
  pace_.relax();
  return take_result();
}

// One that failed does not end the stage for the others: they still write into the folder that its
// end will drop.
bool CheckpointWriter::all_are_done() {
  const auto num_ranks = static_cast<std::size_t>(world_.size());
  std::vector<char> is_done(num_ranks, 0);
  is_done[static_cast<std::size_t>(world_.rank())] = thread_->is_done() ? 1 : 0;
  std::vector<index_t> cuts(num_ranks + 1);
  std::iota(cuts.begin(), cuts.end(), index_t{0});
  world_.start({"checkpoint.poll", AllGather{cuts, nullptr, is_done.data()}}).wait();
  return std::all_of(is_done.begin(), is_done.end(), [](char done) { return done != 0; });
}

void CheckpointWriter::advance() {
  save_->end_stage();
  if (!save_->is_over()) start_work();
}

SaveResult CheckpointWriter::take_result() {
  SaveResult result = save_->result();
  result.is_in_background = true;
  save_.reset();
  return result;
}

}  // namespace weft
