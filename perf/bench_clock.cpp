// How far the clocks of ranks on one machine are found to be apart, which have one clock: rank 0's
// is set back by a second here, so that the error shows. By N ranks:
//
//   apps/launch.sh 8 build/release/perf/bench_clock [READINGS]

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <vector>

#include "core/error.hpp"
#include "parallel/comm/gather_values.hpp"
#include "parallel/comm/rank_clock.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace {

using namespace weft;

constexpr std::int64_t lead_ns = 1'000'000'000;

void run(Transport& transport, int num_readings) {
  Communicator world(transport, nullptr, "world", 0, all_ranks(transport));
  std::vector<double> errors_us, round_trips_us;
  const auto clock = [&] { return steady_ns() + (world.rank() == 0 ? -lead_ns : 0); };
  for (int i = 0; i < num_readings; ++i) {
    const ClockReading reading = read_clock(world, clock);
    if (world.rank() == 0) continue;
    errors_us.push_back(std::abs(static_cast<double>(reading.ahead_ns - lead_ns)) * 1e-3);
    round_trips_us.push_back(static_cast<double>(reading.round_trip_ns) * 1e-3);
  }
  const auto print = [&](const char* what, const std::vector<double>& mine) {
    std::vector<double> all;
    for (const auto& of_rank : all_gather_values(world, what, mine))
      all.insert(all.end(), of_rank.begin(), of_rank.end());
    std::sort(all.begin(), all.end());
    if (world.rank() > 0) return;
    const auto at = [&](double part) {
      return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1))];
    };
    fmt::print("{:>12}: median {:7.2f} us, P95 {:7.2f} us, largest {:7.2f} us\n", what, at(0.5),
               at(0.95), at(1.0));
  };
  if (world.rank() == 0)
    fmt::print("{} ranks over {}, {} readings of each\n", world.size(), transport.name(),
               num_readings);
  print("error", errors_us);
  print("round trip", round_trips_us);
}

}  // namespace

int main(int argc, char** argv) {
  const int num_readings = argc > 1 ? std::atoi(argv[1]) : 200;
  const auto session = make_session(&argc, &argv);
  try {
    require(session->size() > 1 && num_readings > 0, ExitCode::usage,
            "bench_clock: expected 2 ranks or more, and 1 reading or more");
    for (const char* name : {"mpi", "ucx"}) run(*make_transport(name, *session), num_readings);
  } catch (const std::exception& error) {
    session->abort(ExitCode::failed, error.what());
  }
  return 0;
}
