#include "parallel/comm/waiter.hpp"

#include <algorithm>
#include <thread>

namespace weft {

Waiter::Waiter(const WaitOptions& options)
    : options_(options), begin_(Clock::now()), nap_(options.first_nap) {}

bool Waiter::pause() {
  const int pauses = num_pauses_++;
  if (pauses < options_.num_spins) return true;
  if (pauses < options_.num_spins + options_.num_yields) {
    std::this_thread::yield();
    nap_ = options_.first_nap;
  } else {
    num_pauses_ = pauses;  // stays where it is, however long the wait
    std::this_thread::sleep_for(nap_);
    nap_ = std::min(2 * nap_, options_.longest_nap);
  }
  return Clock::now() - begin_ < options_.deadline;
}

}  // namespace weft
