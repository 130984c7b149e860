#include "parallel/data/update_server.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "parallel/comm/waiter.hpp"

namespace weft {

namespace {

index_t bytes_of(index_t num_floats) { return num_floats * index_t{sizeof(float)}; }

// Sends `head` and `floats` to a member, or receives them: two messages, in this order.
template <class Message, class Head, class Float>
std::vector<Request> start(Communicator& group, const char* name, int peer, Head* head,
                           Float* floats, index_t count) {
  std::vector<Request> requests;
  requests.push_back(
      group.start({std::string(name) + ".head", Message{peer, index_t{sizeof(Head)}, head}}));
  requests.push_back(group.start({name, Message{peer, bytes_of(count), floats}}));
  return requests;
}

bool are_done(const std::vector<Request>& requests) {
  return std::all_of(requests.begin(), requests.end(),
                     [](const Request& request) { return request.is_done(); });
}

void wait_for_all(std::vector<Request>& requests) {
  for (Request& request : requests) request.wait();
  requests.clear();
}

constexpr const char* gradient_name = "async.gradient";
constexpr const char* values_name = "async.values";

}  // namespace

WorkerTask first_task(int worker, index_t num_batches) {
  return {.batch = worker < num_batches ? worker : WorkerTask::none, .version = 0};
}

UpdateServer::UpdateServer(Communicator& workers, index_t count, index_t num_batches,
                           index_t max_staleness, Apply apply, Values values)
    : group_(workers),
      count_(count),
      num_batches_(num_batches),
      next_batch_(std::min<index_t>(workers.size(), num_batches)),
      bound_(workers.size(), max_staleness),
      apply_(std::move(apply)),
      values_(std::move(values)),
      workers_(static_cast<std::size_t>(workers.size())) {
  assert(workers.rank() == 0);
  for (int worker = 0; worker < group_.size(); ++worker) {
    Worker& one = workers_[static_cast<std::size_t>(worker)];
    one.gradient.resize(static_cast<std::size_t>(count));
    if (worker > 0) one.values.resize(static_cast<std::size_t>(count));
    one.is_computing = first_task(worker, num_batches).batch != WorkerTask::none;
    if (!one.is_computing) bound_.retire(worker);
    if (worker > 0 && one.is_computing) expect(worker);
  }
}

void UpdateServer::expect(int worker) {
  Worker& one = workers_[static_cast<std::size_t>(worker)];
  one.receiving =
      start<Receive>(group_, gradient_name, worker, &one.note, one.gradient.data(), count_);
}

void UpdateServer::take_arrivals() {
  for (int worker = 1; worker < group_.size(); ++worker) {
    Worker& one = workers_[static_cast<std::size_t>(worker)];
    if (one.receiving.empty() || !are_done(one.receiving)) continue;
    one.receiving.clear();
    arrived_.push_back(worker);
  }
}

bool UpdateServer::poll() {
  // A long message moves piece by piece: all that are here now.
  bool moved_any = false;
  while (group_.progress()->step_all()) moved_any = true;
  take_arrivals();
  const auto may_go = [&](int worker) { return bound_.may_apply(worker); };
  // The first that may; what it leaves behind may have to wait, or may go now.
  for (auto next = std::find_if(arrived_.begin(), arrived_.end(), may_go); next != arrived_.end();
       next = std::find_if(arrived_.begin(), arrived_.end(), may_go)) {
    const int worker = *next;
    arrived_.erase(next);
    apply_one(worker);
  }
  return moved_any;
}

void UpdateServer::apply_one(int worker) {
  Worker& one = workers_[static_cast<std::size_t>(worker)];
  const index_t staleness = bound_.apply(worker);
  apply_({.worker = worker, .note = one.note, .staleness = staleness}, one.gradient.data());
  one.task = next_task();
  one.is_computing = one.task.batch != WorkerTask::none;
  if (!one.is_computing) bound_.retire(worker);
  // At once: others may be applied next.
  if (worker > 0)
    answer(worker);
  else
    values_(own_values_);
}

WorkerTask UpdateServer::next_task() {
  WorkerTask task{.version = bound_.version()};
  if (next_batch_ < num_batches_) task.batch = next_batch_++;
  return task;
}

void UpdateServer::answer(int worker) {
  Worker& one = workers_[static_cast<std::size_t>(worker)];
  wait_for_all(one.sending);  // the worker has had them: it has answered
  values_(one.values.data());
  one.sending = start<Send>(group_, values_name, worker, &one.task, one.values.data(), count_);
  if (one.is_computing) expect(worker);
}

WorkerTask UpdateServer::exchange(const GradientNote& note, const float* gradient, float* values) {
  Worker& mine = workers_[0];
  mine.note = note;
  std::copy_n(gradient, count_, mine.gradient.data());
  own_values_ = values;
  arrived_.push_back(0);
  serve_until([&] { return std::find(arrived_.begin(), arrived_.end(), 0) == arrived_.end(); });
  return mine.task;
}

void UpdateServer::finish() {
  serve_until([&] {
    return std::none_of(workers_.begin(), workers_.end(),
                        [](const Worker& worker) { return worker.is_computing; });
  });
  for (Worker& worker : workers_) wait_for_all(worker.sending);
}

std::string UpdateServer::late_message() const {
  std::vector<int> late;
  for (int worker = 0; worker < group_.size(); ++worker) {
    const bool is_here = std::find(arrived_.begin(), arrived_.end(), worker) != arrived_.end();
    if (workers_[static_cast<std::size_t>(worker)].is_computing && !is_here) late.push_back(worker);
  }
  return fmt::format(
      "no gradient came from worker {} in {} s (comm.timeout_s), and {} others wait for theirs by "
      "--max-staleness {}; see what it does, or allow a longer time",
      fmt::join(late, ", "), group_.progress()->options().deadline.count() / 1000, arrived_.size(),
      bound_.limit());
}

void UpdateServer::serve_until(const std::function<bool()>& is_done) {
  Waiter waiter(group_.progress()->options());
  while (true) {
    const index_t before = bound_.version();
    const bool moved_any = poll();
    if (is_done()) return;
    // The deadline is for a gradient, short pauses for a piece of one.
    if (bound_.version() != before) waiter = Waiter(group_.progress()->options());
    if (moved_any) {
      waiter.restart();
    } else if (!waiter.pause()) {
      throw Error(ExitCode::peer, late_message());
    }
  }
}

WorkerTask UpdateClient::exchange(const GradientNote& note, const float* gradient, float* values) {
  WorkerTask task;
  std::vector<Request> receiving = start<Receive>(group_, values_name, 0, &task, values, count_);
  std::vector<Request> sending = start<Send>(group_, gradient_name, 0, &note, gradient, count_);
  wait_for_all(sending);
  wait_for_all(receiving);
  return task;
}

}  // namespace weft
