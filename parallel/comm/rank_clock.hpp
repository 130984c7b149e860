// The clocks of ranks, which differ between machines and drift apart.
#pragma once

#include <cstdint>
#include <functional>

#include "parallel/comm/communicator.hpp"

namespace weft {

// Of std::chrono::steady_clock.
std::int64_t steady_ns();

struct ClockReading {
  std::int64_t ahead_ns = 0;       // of rank 0's clock; wrong by half a round trip at most
  std::int64_t round_trip_ns = 0;  // the quickest one
};

// Collective over `world`: how far this rank's clock is ahead of rank 0's. Rank 0 asks each rank
// for its time, several times, and takes it to be of the middle of question and answer; the
// quickest exchange counts (Cristian 1989). A difference within half of its round trip counts as
// none: ranks of one machine have one clock. `clock`: this rank's, in nanoseconds.
ClockReading read_clock(Communicator& world,
                        const std::function<std::int64_t()>& clock = steady_ns);

}  // namespace weft
