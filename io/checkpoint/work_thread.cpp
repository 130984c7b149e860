#include "io/checkpoint/work_thread.hpp"

#include <cassert>
#include <utility>

#include "io/background_thread.hpp"

namespace weft {

WorkThread::WorkThread() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

WorkThread::~WorkThread() = default;

void WorkThread::start(Work work) {
  {
    const std::lock_guard lock(mutex_);
    assert(!work_);
    work_ = std::move(work);
  }
  changed_.notify_all();
}

bool WorkThread::is_done() const {
  const std::lock_guard lock(mutex_);
  return !work_;
}

void WorkThread::wait() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !work_; });
}

void WorkThread::run(const std::stop_token& stop) {
  let_computing_threads_go_first();
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return static_cast<bool>(work_); })) {
    lock.unlock();
    work_(stop);
    lock.lock();
    work_ = nullptr;
    changed_.notify_all();
  }
}

}  // namespace weft
