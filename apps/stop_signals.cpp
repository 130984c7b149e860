// Signal handlers that leave a note; see the header.
#include "apps/stop_signals.hpp"

#include <time.h>

#include <atomic>
#include <cstdint>

namespace weft {

namespace {

// A handler has no arguments of ours, so these are the one state of the program outside of objects.
std::atomic<int> first_signal{0};
std::atomic<std::int64_t> first_term_ns{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "a signal handler must not wait");

constexpr std::int64_t same_request_ns = 1'000'000'000;

std::int64_t clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// Calls nothing but what POSIX allows in a handler.
void note_signal(int signal_number) {
  int none = 0;
  first_signal.compare_exchange_strong(none, signal_number);
  if (signal_number != SIGTERM) return;
  const std::int64_t now_ns = clock_ns();
  std::int64_t before_ns = 0;
  if (first_term_ns.compare_exchange_strong(before_ns, now_ns)) return;
  if (now_ns - before_ns < same_request_ns) return;
  // Blocked until this returns, then the end.
  signal(SIGTERM, SIG_DFL);
  raise(SIGTERM);
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  first_term_ns = 0;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  // Calls that wait go on: nobody but the training loop is to notice.
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGTERM, &action, &old_term_);
  sigaction(SIGUSR1, &action, &old_usr1_);
}

StopSignals::~StopSignals() {
  sigaction(SIGTERM, &old_term_, nullptr);
  sigaction(SIGUSR1, &old_usr1_, nullptr);
}

int StopSignals::received() const { return first_signal; }

double StopSignals::elapsed_s() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace weft
