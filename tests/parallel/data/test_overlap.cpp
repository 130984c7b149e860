// Buckets leave while backward goes on: the ranks' backward passes go in step, piece by piece, so
// that what must have moved does not depend on the machine's load.
#include <catch2/catch.hpp>

#include <barrier>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/parallel/data/data_grid.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

struct Seen {
  TransferStatistics statistics;
  std::int64_t first_launch_ns = -1;  // by the trace
  std::int64_t first_arrival_ns = -1;
  std::int64_t last_ready_ns = -1;
  std::int64_t finish_ns = -1;
  std::uint64_t bytes = 0;  // that the trace gives the first bucket
};

// One step of a backward pass that takes time; the ranks wait for each other at each piece.
Seen one_step(GridRank& rank, std::barrier<>& in_step) {
  rank.context.trace.record_events(true);
  Seen seen;
  const Trace& trace = rank.context.trace;
  rank.sum_gradients(0, [&] {
    seen.last_ready_ns = trace.now_ns();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    in_step.arrive_and_wait();
  });
  seen.statistics = rank.sync->statistics();
  seen.finish_ns = trace.now_ns() - seen.statistics.exposed_ns;
  for (const Trace::Event& event : trace.events()) {
    if (trace.names()[event.name] != "grad_sync.bucket.0") continue;
    if (seen.first_launch_ns < 0) seen.first_launch_ns = event.begin_ns;
    seen.first_arrival_ns = event.end_ns;
    seen.bytes += event.bytes;
  }
  rank.sync->release();
  return seen;
}

}  // namespace

TEST_CASE("a bucket leaves before the last piece is ready and is there before finish()",
          "[grad_sync]") {
  for (const index_t zero : {0, 1}) {
    for (const int dp : {2, 3}) {
      const GridRun run{.lanes = dp, .dp = dp, .zero = zero, .bucket_bytes = 1};
      INFO(run.text());
      std::barrier in_step(dp);
      const auto seen =
          results_of_grid<Seen>(run, [&](GridRank& rank) { return one_step(rank, in_step); });
      std::uint64_t bytes = 0;
      for (const Seen& of_rank : seen) {
        bytes += of_rank.bytes;
        const TransferStatistics& s = of_rank.statistics;
        // 16 norm blocks of pieces, 3 of what is complete only when the lane ends.
        CHECK(s.num_buckets == 19);
        CHECK(s.launched_early == 16);
        CHECK(s.finished_early >= 8);
        CHECK(of_rank.first_launch_ns >= 0);
        CHECK(of_rank.first_launch_ns < of_rank.last_ready_ns);
        CHECK(of_rank.first_arrival_ns < of_rank.last_ready_ns);
        CHECK(s.under_way_ns > 0);
        CHECK(s.exposed_ns >= 0);
        CHECK(s.hidden_share() > 0.0);
        CHECK(s.hidden_share() <= 1.0);
      }
      CHECK(bytes > 0);
    }
  }
}

TEST_CASE("nothing leaves before the rank's last lane", "[grad_sync]") {
  const GridRun run{.lanes = 4, .dp = 2, .bucket_bytes = 1024};
  const auto first_lane = results_of_grid<std::uint64_t>(run, [](GridRank& rank) {
    const index_t begin = rank.sync->lanes().begin;
    std::uint64_t sent_in_first = 0;
    index_t pieces = 0;
    rank.sum_gradients(0, [&] {
      // up.weight, down.weight, head.bias in four pieces, position.
      if (++pieces == 13) sent_in_first = rank.dp().bytes_sent();
    });
    if (pieces != 26 || begin % 2 != 0) throw std::runtime_error("another number of pieces");
    if (rank.dp().bytes_sent() == 0) throw std::runtime_error("nothing was sent");
    rank.sync->release();
    return sent_in_first;
  });
  for (const std::uint64_t sent : first_lane) CHECK(sent == 0);
}

TEST_CASE("one rank has no transfers", "[grad_sync]") {
  run_grid({.zero = 1}, [](GridRank& rank) {
    rank.sum_gradients(0);
    rank.sync->publish(rank.context);
    rank.sync->release();
    CHECK(rank.sync->statistics().num_buckets == 0);
    CHECK(rank.sync->statistics().bytes_sent == 0);
    CHECK(rank.sync->statistics().hidden_share() == 0.0);
    CHECK(rank.dp().bytes_sent() == 0);
    CHECK(rank.sync->owned().num_elements() == rank.parameters.flat_elements());
  });
}
