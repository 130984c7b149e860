#include "io/checkpoint/checkpoint_writer.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>
#include <vector>

namespace weft {

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
  thread_.emplace();
}

std::optional<SaveResult> CheckpointWriter::start(const LocalState& state,
                                                  const RunProgress& progress) {
  assert(staged_ && !is_under_way());
  save_ = std::make_unique<CheckpointSave>(world_, options_, identity_, shard_, progress);
  save_->begin(staged_->state(), staged_->share());
  if (save_->is_over()) return take_result();
  staged_->copy_from(state);
  thread_->start([this](const std::stop_token& stop) { save_->work(stop); });
  return std::nullopt;
}

std::optional<SaveResult> CheckpointWriter::poll() {
  if (!is_under_way() || !all_are_done()) return std::nullopt;
  advance();
  if (!save_->is_over()) return std::nullopt;
  return take_result();
}

SaveResult CheckpointWriter::wait() {
  assert(is_under_way());
  while (!save_->is_over()) {
    thread_->wait();
    advance();
  }
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
  if (!save_->is_over()) thread_->start([this](const std::stop_token& stop) { save_->work(stop); });
}

SaveResult CheckpointWriter::take_result() {
  SaveResult result = save_->result();
  result.is_in_background = true;
  save_.reset();
  return result;
}

}  // namespace weft
