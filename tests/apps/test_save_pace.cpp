// When a checkpoint is due by the clock, at times by hand.
#include <catch2/catch.hpp>

#include "apps/save_pace.hpp"

using namespace weft;
using namespace std::chrono_literals;

namespace {

const SavePace::Clock::time_point start{1000s};

SavePace pace_of(double overhead, index_t every_s = 0) {
  SavePace pace({.every = {every_s}, .overhead = overhead});
  pace.begin_training(start);
  return pace;
}

}  // namespace

TEST_CASE("nothing is due by a clock that no one asked for") {
  SavePace pace = pace_of(0.0);
  CHECK_FALSE(pace.is_due(1000000, start + 1000h));
  pace.begin_save(start + 10s);
  pace.add_wait(5s);
  CHECK_FALSE(pace.is_due(1000000, start + 1000h));
  CHECK_FALSE(pace.interval_s());
  // What steps waited is known all the same.
  CHECK(pace.measured_overhead(start + 50s) == 0.1);
}

TEST_CASE("so long since the last save began") {
  SavePace pace = pace_of(0.0, 60);
  CHECK_FALSE(pace.is_due(1, start + 59s));
  CHECK(pace.is_due(1, start + 60s));
  pace.begin_save(start + 70s);
  pace.add_wait(50s);
  CHECK_FALSE(pace.is_due(1, start + 129s));
  CHECK(pace.is_due(1, start + 130s));
}

TEST_CASE("as often as the budget allows") {
  SavePace pace = pace_of(0.25);
  // As if a save took one step, whatever time it is.
  CHECK_FALSE(pace.is_due(3, start + 1000h));
  CHECK(pace.is_due(4, start));
  pace.begin_save(start + 10s);
  pace.add_wait(2s);
  CHECK(pace.interval_s() == 8.0);
  CHECK_FALSE(pace.is_due(1000, start + 17s));
  CHECK(pace.is_due(5, start + 18s));
  // The longest one counts, and all parts of a wait.
  pace.begin_save(start + 18s);
  pace.add_wait(1s);
  CHECK(pace.interval_s() == 8.0);
  pace.add_wait(2s);
  CHECK(pace.interval_s() == 12.0);
  CHECK_FALSE(pace.is_due(1000, start + 29s));
  CHECK(pace.is_due(6, start + 30s));
  pace.begin_save(start + 30s);
  pace.add_wait(1s);
  CHECK(pace.interval_s() == 12.0);
  CHECK(pace.measured_overhead(start + 60s) == 0.1);
  // Nothing after the end is the steps'.
  pace.end_training(start + 48s);
  CHECK(pace.measured_overhead(start + 1000s) == 0.125);
}

TEST_CASE("whichever is due first") {
  SavePace pace = pace_of(0.5, 10);
  CHECK(pace.is_due(1, start + 10s));
  CHECK(pace.is_due(2, start + 1s));
  pace.begin_save(start + 1s);
  pace.add_wait(1s);
  CHECK(pace.is_due(3, start + 3s));
  pace.add_wait(9s);
  CHECK_FALSE(pace.is_due(3, start + 10s));
  CHECK(pace.is_due(3, start + 11s));
}
