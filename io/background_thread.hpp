// What all threads beside the one that computes do first.
#pragma once

#include <pthread.h>
#include <sched.h>

namespace weft {

// Where threads share cores, the calling one's waking up is not to take a core from one that
// computes. Only a wish: on systems that refuse it is as it was. Threads that it starts inherit it.
inline void let_computing_threads_go_first() {
  const sched_param none{};
  ::pthread_setschedparam(::pthread_self(), SCHED_BATCH, &none);
}

}  // namespace weft
