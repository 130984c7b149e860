// Signals that ask a run to stop: SIGTERM and SIGUSR1, as batch systems send them before a job's
// end. Catching them only leaves a note; who trains looks for it between steps.
#pragma once

#include <signal.h>

#include <chrono>

namespace weft {

// One a process, as handlers are the process'; made before anything that takes time. A second
// SIGTERM, a second or more after the first, ends the process at once: the batch system or its user
// means it. Sooner it is the same one, sent by both a launcher and a batch system.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();  // the handlers of before
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Local: SIGTERM or SIGUSR1, whichever came first to this process; 0: none yet.
  int received() const;
  // Since this was made: of the process, but for its first milliseconds.
  double elapsed_s() const;

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  struct sigaction old_term_ = {};
  struct sigaction old_usr1_ = {};
};

}  // namespace weft
