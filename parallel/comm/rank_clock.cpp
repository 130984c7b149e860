#include "parallel/comm/rank_clock.hpp"

#include <chrono>
#include <cstdlib>
#include <limits>

namespace weft {

namespace {

constexpr int num_exchanges = 16;

template <class T>
void send(Communicator& world, int peer, const T& value) {
  world.start({"clock", Send{peer, index_t{sizeof(T)}, &value}}).wait();
}

template <class T>
T receive(Communicator& world, int peer) {
  T value{};
  world.start({"clock", Receive{peer, index_t{sizeof(T)}, &value}}).wait();
  return value;
}

// Rank 0's part.
ClockReading read_clock_of(Communicator& world, int peer,
                           const std::function<std::int64_t()>& clock) {
  ClockReading best{.ahead_ns = 0, .round_trip_ns = std::numeric_limits<std::int64_t>::max()};
  for (int i = 0; i < num_exchanges; ++i) {
    const std::int64_t asked_ns = clock();
    send(world, peer, asked_ns);
    const auto theirs_ns = receive<std::int64_t>(world, peer);
    const std::int64_t took_ns = clock() - asked_ns;
    if (took_ns < best.round_trip_ns) best = {theirs_ns - (asked_ns + took_ns / 2), took_ns};
  }
  if (std::abs(best.ahead_ns) <= best.round_trip_ns / 2 + 1) best.ahead_ns = 0;
  return best;
}

}  // namespace

std::int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

ClockReading read_clock(Communicator& world, const std::function<std::int64_t()>& clock) {
  if (world.rank() == 0) {
    for (int peer = 1; peer < world.size(); ++peer)
      send(world, peer, read_clock_of(world, peer, clock));
    return {};
  }
  for (int i = 0; i < num_exchanges; ++i) {
    receive<std::int64_t>(world, 0);
    send(world, 0, clock());
  }
  return receive<ClockReading>(world, 0);
}

}  // namespace weft
