// All-reduce over the built-in transports, by algorithm and length: which transport is faster, and
// where choose.cpp should change from one algorithm to the next. All are timed alternately, round
// by round in one process, so that the machine's moods meet all alike; a time is the slowest
// rank's.
//
//   apps/launch.sh N build/release/perf/bench_comm [ROUNDS]

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "parallel/comm/algorithms.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace {

using namespace weft;
using Clock = std::chrono::steady_clock;

struct Way {
  std::string transport;
  Algorithm algorithm;
  Communicator* comm;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Microseconds of one all-reduce of `count` floats, over `repeats` in a row.
double time_of(const Way& way, index_t count, int repeats) {
  std::vector<float> values(static_cast<std::size_t>(count), 1.0f);
  way.comm->force(Algorithm::automatic);
  way.comm->barrier();
  way.comm->force(way.algorithm);
  const auto begin = Clock::now();
  for (int i = 0; i < repeats; ++i) {
    const AllReduce sum{Precision::f32, Order::tree,     way.comm->size(),
                        count,          {values.data()}, values.data()};
    way.comm->start({"bench", sum}).wait();
  }
  const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  way.comm->force(Algorithm::automatic);
  const std::string_view mine(reinterpret_cast<const char*>(&us), sizeof us);
  double slowest = 0;
  for (const std::string& text : way.comm->all_gather_strings("times", mine)) {
    double other = 0;
    std::memcpy(&other, text.data(), sizeof other);
    slowest = std::max(slowest, other);
  }
  return slowest / repeats;
}

void compare(Session& session, const std::vector<Way>& ways, index_t bytes, int rounds) {
  const index_t count = std::max<index_t>(1, bytes / 4);
  const int repeats = static_cast<int>(std::clamp<index_t>((1 << 19) / (bytes + 1), 1, 200));
  std::vector<std::vector<double>> times(ways.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i)
      times[i].push_back(time_of(ways[i], count, repeats));
  }
  if (session.rank() != 0) return;
  fmt::print("{:>9}", bytes);
  for (const auto& samples : times) fmt::print("  {:>11.1f}", median(samples));
  fmt::print("\n");
  std::fflush(stdout);
}

void run(Session& session, int rounds) {
  std::vector<std::unique_ptr<Transport>> transports;
  std::vector<std::unique_ptr<Communicator>> comms;
  std::vector<Way> ways;
  for (const std::string& name : built_in_transports()) {
    if (name == "local") continue;
    transports.push_back(make_transport(name, session));
    comms.push_back(std::make_unique<Communicator>(*transports.back(), nullptr, name, 0,
                                                   all_ranks(*transports.back())));
    for (const Algorithm algorithm :
         {Algorithm::tree_small, Algorithm::tree_direct, Algorithm::tree_halving}) {
      if (algorithm == Algorithm::tree_halving &&
          !tree_halving_fits(session.size(), session.size()))
        continue;
      ways.push_back({name, algorithm, comms.back().get()});
    }
  }
  if (session.rank() == 0) {
    fmt::print("all-reduce of float, {} ranks, median of {} rounds, us\n    bytes", session.size(),
               rounds);
    for (const Way& way : ways)
      fmt::print("  {:>11}", way.transport + "." + std::string(name_of(way.algorithm)).substr(5));
    fmt::print("\n");
  }
  for (const index_t kib : {0, 1, 4, 8, 16, 64, 256, 1024, 4096})
    compare(session, ways, kib ? kib * 1024 : 8, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  const auto session = weft::make_session(&argc, &argv);
  try {
    run(*session, argc > 1 ? std::atoi(argv[1]) : 21);
  } catch (const weft::Error& error) {
    session->abort(error.code(), error.what());
  } catch (const std::exception& error) {
    session->abort(weft::ExitCode::failed, error.what());
  }
  return 0;
}
