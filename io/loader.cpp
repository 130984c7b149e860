// The loader's thread and its ring of batches; see the header.
#include "io/loader.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "io/background_thread.hpp"

namespace weft {

LoaderOptions loader_options(const Plan& plan, index_t dp_rank) {
  LoaderOptions options;
  options.lanes = part_of(dp_rank, plan.layout.dp, plan.num_lanes());
  options.micro = plan.batch.micro;
  options.microbatches_per_lane = plan.microbatches_per_lane();
  options.augment = plan.task.augment;
  options.seed = plan.numerics.seed;
  return options;
}

Loader::Loader(const SampleSet& data, Sampler sampler, const LoaderOptions& options)
    : reader_(data, options.augment ? std::optional(options.seed) : std::nullopt,
              options.class_weights, options.with_input),
      sampler_(std::move(sampler)),
      options_(options),
      rows_(rows_of_lanes(options.lanes, options.micro, options.microbatches_per_lane)),
      slots_(options.depth + 1) {
  require(options.depth >= 1 && options.first_step >= 0, ExitCode::usage,
          fmt::format("loader: depth = {}, first step = {}: expected at least 1 and 0",
                      options.depth, options.first_step));
  require(rows_.begin >= 0 && !rows_.empty() && rows_.end <= sampler_.global_batch(),
          ExitCode::usage,
          fmt::format("loader: lanes {}..{} of {} x {} samples do not lie in a global batch of {}",
                      options.lanes.begin, options.lanes.end - 1, options.microbatches_per_lane,
                      options.micro, sampler_.global_batch()));
  thread_ = std::thread([this] { run(); });
}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loader::run() {
  let_computing_threads_go_first();  // else reading would count as a wait for data
  std::exception_ptr failure = exception_of([this] { read_all(); });
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);  // told by next()
  }
  changed_.notify_all();
}

void Loader::read_all() {
  for (index_t step = options_.first_step; step < options_.end_step; ++step) {
    if (!wait_for_free_batch()) return;
    HostBatch& batch = slot_of(step - options_.first_step);
    batch.read_begin = std::chrono::steady_clock::now();
    reader_.read_into(sampler_.indices_of(step), rows_, batch);
    batch.read_end = std::chrono::steady_clock::now();
    publish();
  }
  throw Error(ExitCode::failed,
              fmt::format("loader: asked for a batch beyond the last step, {}", options_.end_step));
}

// False: stop.
bool Loader::wait_for_free_batch() {
  std::unique_lock lock(mutex_);
  // In use beside the one to be filled: those ready and, from the first next() on, the caller's.
  changed_.wait(lock, [this] {
    const index_t in_use = filled_ - taken_ + (taken_ > 0 ? 1 : 0);
    return stop_ || in_use < static_cast<index_t>(slots_.size());
  });
  return !stop_;
}

void Loader::publish() {
  {
    const std::lock_guard lock(mutex_);
    ++filled_;
  }
  changed_.notify_all();
}

const HostBatch& Loader::next() {
  const HostBatch* batch = nullptr;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return filled_ > taken_ || failure_ != nullptr; });
    if (filled_ == taken_) std::rethrow_exception(failure_);
    batch = &slot_of(taken_++);
  }
  changed_.notify_all();
  return *batch;
}

}  // namespace weft
