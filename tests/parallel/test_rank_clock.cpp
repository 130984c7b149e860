// Clocks that are wrong by a known amount are found to be so, within half of a round trip.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <mutex>
#include <vector>

#include "parallel/comm/local_transport.hpp"
#include "parallel/comm/rank_clock.hpp"

using namespace weft;

TEST_CASE("a clock's lead is found within half of the quickest round trip", "[rank_clock]") {
  // Nanoseconds by which each rank's clock leads the machine's.
  const std::vector<std::int64_t> leads{700'000'000, 0, 700'000'000, -5'000'000'000,
                                        1'000'000'000'000};
  std::vector<ClockReading> readings(leads.size());
  run_ranks(static_cast<int>(leads.size()), [&](Transport& transport) {
    Communicator world(transport, nullptr, "world", 0, all_ranks(transport));
    const auto rank = static_cast<std::size_t>(world.rank());
    readings[rank] = read_clock(world, [&] { return steady_ns() + leads[rank]; });
  });
  CHECK(readings[0].ahead_ns == 0);
  CHECK(readings[2].ahead_ns == 0);  // as rank 0's, so nothing within half of the round trip
  for (std::size_t rank = 1; rank < leads.size(); ++rank) {
    const std::int64_t error = readings[rank].ahead_ns - (leads[rank] - leads[0]);
    INFO("rank " << rank << ": " << error << " ns, round trip " << readings[rank].round_trip_ns);
    CHECK(readings[rank].round_trip_ns > 0);
    CHECK(std::abs(error) <= readings[rank].round_trip_ns / 2 + 1);
  }
}

TEST_CASE("the quickest exchange counts, however slow the others are", "[rank_clock]") {
  std::vector<ClockReading> readings(2);
  run_ranks(2, [&](Transport& transport) {
    Communicator world(transport, nullptr, "world", 0, all_ranks(transport));
    // A clock that each reading makes 1 ms later, but for two of rank 0's in a row.
    std::int64_t now = 0;
    int count = 0;
    const auto clock = [&] {
      if (world.rank() == 1) return std::int64_t{42'000'000};
      now += ++count == 12 ? 1000 : 1'000'000;
      return now;
    };
    readings[static_cast<std::size_t>(world.rank())] = read_clock(world, clock);
  });
  // Rank 0's readings are 1, 2, .., 11 ms, then 11.001 ms: the sixth exchange takes 1 us.
  CHECK(readings[1].round_trip_ns == 1000);
  CHECK(readings[1].ahead_ns == 42'000'000 - 11'000'500);
}
