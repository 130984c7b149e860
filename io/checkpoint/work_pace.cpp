#include "io/checkpoint/work_pace.hpp"

#include <time.h>

#include <chrono>

namespace weft {

namespace {

// Shorter ones would go by in the timer's slack and in going to sleep.
constexpr double least_work_s = 0.2e-3;

// Processor time of the calling thread.
double worked_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

void WorkPace::begin() { worked_until_s_ = worked_s(); }

void WorkPace::rest(const std::stop_token& stop) {
  if (share_ >= 1.0) return;
  const double worked = worked_s() - worked_until_s_;
  if (worked < least_work_s) return;
  const std::chrono::duration<double> time(worked * (1.0 / share_ - 1.0));
  {
    std::unique_lock lock(mutex_);
    const auto begin = std::chrono::steady_clock::now();
    changed_.wait_for(lock, stop, time, [this] { return is_urgent_; });
    rested_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  worked_until_s_ = worked_s();
}

void WorkPace::hurry() {
  {
    const std::lock_guard lock(mutex_);
    is_urgent_ = true;
  }
  changed_.notify_all();
}

void WorkPace::relax() {
  const std::lock_guard lock(mutex_);
  is_urgent_ = false;
}

double WorkPace::rested_s() const {
  const std::lock_guard lock(mutex_);
  return rested_s_;
}

}  // namespace weft
