// The rests of a thread that works beside the steps.
#include <catch2/catch.hpp>

#include <time.h>

#include <stop_token>
#include <thread>

#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/verify.hpp"
#include "io/checkpoint/work_pace.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

double processor_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void work_for(double seconds) {
  for (const double begin = processor_s(); processor_s() - begin < seconds;) {
  }
}

// After a piece of work of a millisecond this share asks for more than ten minutes.
constexpr double hardly_any = 1e-6;

}  // namespace

TEST_CASE("work and rests are as the share says", "[work_pace]") {
  for (const double share : {0.5, 0.2}) {
    WorkPace pace(share);
    work_for(0.05);  // before its begin
    pace.begin();
    const double begin = processor_s();
    for (int piece = 0; piece < 20; ++piece) {
      work_for(0.5e-3);
      pace.rest({});
    }
    const double worked = processor_s() - begin;
    INFO("worked " << worked << " s, rested " << pace.rested_s() << " s");
    CHECK(worked >= 10e-3);
    // What a rest itself costs is not counted as work.
    CHECK(pace.rested_s() >= 10e-3 * (1.0 / share - 1.0));
  }
}

TEST_CASE("a whole core's share, and pieces that are too short, are no reason to rest",
          "[work_pace]") {
  WorkPace whole(1.0), none(hardly_any);
  whole.begin();
  work_for(1e-3);
  whole.rest({});
  CHECK(whole.rested_s() == 0.0);
  none.begin();
  none.rest({});
  CHECK(none.rested_s() == 0.0);
}

TEST_CASE("who waits for the work ends its rests", "[work_pace]") {
  WorkPace pace(hardly_any);
  std::jthread worker([&](const std::stop_token& stop) {
    pace.begin();
    for (int piece = 0; piece < 10; ++piece) {
      work_for(1e-3);
      pace.rest(stop);
    }
  });
  pace.hurry();
  worker.join();
  CHECK(pace.rested_s() < 60.0);
}

TEST_CASE("once nobody waits it rests again, until a stop is asked for", "[work_pace]") {
  WorkPace pace(hardly_any);
  pace.hurry();
  pace.relax();
  std::atomic<bool> is_to_rest{false};
  std::jthread worker([&](const std::stop_token& stop) {
    pace.begin();
    work_for(1e-3);
    is_to_rest = true;
    is_to_rest.notify_one();
    pace.rest(stop);
  });
  is_to_rest.wait(false);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  worker.request_stop();
  worker.join();
  CHECK(pace.rested_s() > 0.0);
  CHECK(pace.rested_s() < 60.0);
}

TEST_CASE("a save whose threads rest is the same, and its rests are no work", "[work_pace]") {
  const SomeModel model{{"up", cut({512, 512}, 0)}, {"down", cut({512, 512}, 1)}};
  // More than any host has cores, and so that the writer's thread need not care.
  for (const bool paces : {true, false}) {
    const TemporaryFolder folder;
    on_state_ranks(model, {.shards = 2, .tp = 2}, [&](StateRank& rank) {
      CheckpointWriter writer(rank.mesh.world(),
                              {.folder = folder.path(),
                               .retention = {.keep = 2},
                               .read_back = true,
                               .num_threads = 1 << 20,
                               .paces = paces,
                               .program = "0.0",
                               .plan_name = "some",
                               .layout = "some"},
                              some_identity());
      writer.make_staging(rank.context.arena, rank.state(), rank.share());
      for (index_t step = 1; step <= 2; ++step) {
        rank.fill(static_cast<std::uint64_t>(step));
        std::optional<SaveResult> saved = writer.start(rank.state(), progress_at(step));
        rank.fill(99);
        // Polled to its end, so that nobody hurries; then waited for.
        while (step == 1 && !saved) saved = writer.poll();
        if (!saved) saved = writer.wait();
        if (!saved->is_saved || !saved->fault.empty())
          throw std::runtime_error("not saved: " + saved->fault);
        double rest_s = 0.0;
        for (const SaveResult::Work& work : saved->work) {
          if (work.seconds() < 0.0) throw std::runtime_error("more rest than time");
          rest_s += work.rest_s;
        }
        if (!paces && rest_s != 0.0) throw std::runtime_error("rested");
        if (paces && step == 1 && rest_s == 0.0) throw std::runtime_error("never rested");
        rank.clear();
        LoadResult loaded;
        if (const std::string fault = rank.load(saved->path, loaded); !fault.empty())
          throw std::runtime_error(fault);
        if (const std::string other = rank.difference(static_cast<std::uint64_t>(step));
            !other.empty())
          throw std::runtime_error(other);
      }
    });
    for (const CheckpointPlace& place : list_checkpoints(folder.path()))
      CHECK(verify_checkpoint(open_checkpoint(place.path)).num_faults == 0);
  }
}
