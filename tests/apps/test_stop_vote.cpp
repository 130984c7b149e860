// When a run stops, and that all ranks find it after the same step: here they are threads, and so
// share the process' signals. One rank's signal is for tests/fault/test_stop.cpp.
#include <catch2/catch.hpp>

#include <signal.h>

#include <string>
#include <vector>

#include "apps/stop_text.hpp"
#include "apps/stop_vote.hpp"
#include "parallel/comm/local_transport.hpp"

using namespace weft;

namespace {

// What each of `num_ranks` ranks finds after each of `num_steps` steps; all alike, or the test
// fails. `save_s`: what a save is said to take.
std::vector<StopReason> votes(int num_ranks, const StopSignals& signals, double limit_s,
                              int num_steps, double save_s = 0.0) {
  std::vector<std::vector<StopReason>> found(static_cast<std::size_t>(num_ranks));
  run_ranks(num_ranks, [&](Transport& transport) {
    Communicator world(transport, nullptr, "world", 0, all_ranks(transport));
    // Only the first rank's limit counts.
    StopVote vote(world, signals, transport.rank() == 0 ? limit_s : 1e-9);
    for (int step = 0; step < num_steps; ++step) {
      vote.start(save_s);
      found[static_cast<std::size_t>(transport.rank())].push_back(vote.wait());
    }
  });
  for (const auto& of_rank : found) REQUIRE(of_rank == found.front());
  return found.front();
}

}  // namespace

TEST_CASE("a run stops for its limit by the first rank's clock, with room for a save", "[stop]") {
  const StopSignals signals;
  const std::vector<StopReason> none(3, StopReason::none), limit(3, StopReason::time_limit);
  for (const int num_ranks : {1, 2, 4}) {
    CHECK(votes(num_ranks, signals, 0.0, 3) == none);
    CHECK(votes(num_ranks, signals, 3600.0, 3) == none);
    CHECK(votes(num_ranks, signals, 3600.0, 3, 3590.0) == none);
    CHECK(votes(num_ranks, signals, 3600.0, 3, 3601.0) == limit);
    CHECK(votes(num_ranks, signals, 1e-9, 3) == limit);
  }
}

TEST_CASE("the first signal is the reason, and one sent twice is one", "[stop]") {
  const auto after = [](const std::vector<int>& numbers) {
    const StopSignals signals;
    for (const int number : numbers) raise(number);
    return votes(3, signals, 1e-9, 1).front();
  };
  CHECK(after({}) == StopReason::time_limit);
  CHECK(after({SIGTERM}) == StopReason::sigterm);
  CHECK(after({SIGUSR1}) == StopReason::sigusr1);
  CHECK(after({SIGUSR1, SIGUSR1, SIGTERM}) == StopReason::sigusr1);
  CHECK(after({SIGTERM, SIGTERM, SIGUSR1}) == StopReason::sigterm);
}

TEST_CASE("handlers are those of before again", "[stop]") {
  struct sigaction before = {}, after = {};
  sigaction(SIGTERM, nullptr, &before);
  { const StopSignals signals; }
  sigaction(SIGTERM, nullptr, &after);
  CHECK(after.sa_handler == before.sa_handler);
}

TEST_CASE("the command that goes on is one for a shell", "[stop]") {
  const RunInputs inputs{.plan_path = "plans/a.toml",
                         .overrides = {"layout.tp=2", "layout.stages=[1, 2]", "name=it's"},
                         .data_folder = "my data"};
  CHECK(resume_command(inputs, "runs/a") ==
        "weft train plans/a.toml --set layout.tp=2 --set 'layout.stages=[1, 2]' --set "
        "'name=it'\\''s' --data 'my data' --run runs/a --resume auto");
}

TEST_CASE("a save is asked for by the first rank alone, and all know of it", "[stop]") {
  const StopSignals signals;
  for (const int num_ranks : {1, 3}) {
    std::vector<std::vector<bool>> found(static_cast<std::size_t>(num_ranks));
    run_ranks(num_ranks, [&](Transport& transport) {
      Communicator world(transport, nullptr, "world", 0, all_ranks(transport));
      StopVote vote(world, signals, 0.0);
      for (const bool asks : {false, true, false, true}) {
        vote.start(0.0, transport.rank() == 0 ? asks : !asks);
        const bool stops = vote.wait() != StopReason::none;
        found[static_cast<std::size_t>(transport.rank())].push_back(!stops &&
                                                                    vote.is_save_asked_for());
      }
    });
    for (const auto& of_rank : found) CHECK(of_rank == std::vector<bool>{false, true, false, true});
  }
}
