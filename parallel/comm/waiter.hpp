// How a rank waits for its peers: the one policy that everything in comm uses. It must be fast
// where every rank has a core and still fair where twelve ranks share two. It knows nothing of
// messages.
#pragma once

#include <chrono>

namespace weft {

// Poll `num_spins` times at full speed, then give the core away `num_yields` times, then sleep with
// naps that double from `first_nap` to `longest_nap`.
struct WaitOptions {
  // Few: where a peer waits for this core each spin delays it, and where none does a yield returns
  // at once.
  int num_spins = 20;
  int num_yields = 200;
  std::chrono::microseconds first_nap{20};
  std::chrono::microseconds longest_nap{500};
  // A rank that has waited this long gives up and names the peer that it waited for.
  std::chrono::milliseconds deadline{600'000};
};

class Waiter {
 public:
  explicit Waiter(const WaitOptions& options);

  // Call after each poll that found nothing. False once the deadline has passed.
  bool pause();
  // Call when a poll found something: the next pauses are short again. The deadline stays.
  void restart() { num_pauses_ = 0; }

 private:
  using Clock = std::chrono::steady_clock;

  WaitOptions options_;
  Clock::time_point begin_;
  std::chrono::microseconds nap_;
  int num_pauses_ = 0;
};

}  // namespace weft
