// Schedules drawn over time: grids written out by hand, the papers' formulas for every slot and for
// the bubble.
#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"
#include "parallel/pipeline/schedule_grid.hpp"

namespace weft::pipeline {

namespace {

std::string gpipe_grid(int p, index_t m) { return "\n" + ScheduleGrid(gpipe(p, m)).text(); }
std::string one_f_one_b_grid(int p, index_t m) {
  return "\n" + ScheduleGrid(one_f_one_b(p, m)).text();
}

}  // namespace

TEST_CASE("gpipe, drawn") {
  CHECK(gpipe_grid(1, 3) == R"(
stage 0 | F0 F1 F2 B0 B1 B2
)");
  CHECK(gpipe_grid(2, 4) == R"(
stage 0 | F0 F1 F2 F3 .. .. B0 B1 B2 B3
stage 1 | .. F0 F1 F2 F3 B0 B1 B2 B3 ..
)");
  CHECK(gpipe_grid(4, 4) == R"(
stage 0 | F0 F1 F2 F3 .. .. .. .. .. .. B0 B1 B2 B3
stage 1 | .. F0 F1 F2 F3 .. .. .. .. B0 B1 B2 B3 ..
stage 2 | .. .. F0 F1 F2 F3 .. .. B0 B1 B2 B3 .. ..
stage 3 | .. .. .. F0 F1 F2 F3 B0 B1 B2 B3 .. .. ..
)");
  CHECK(gpipe_grid(4, 8) == R"(
stage 0 | F0 F1 F2 F3 F4 F5 F6 F7 .. .. .. .. .. .. B0 B1 B2 B3 B4 B5 B6 B7
stage 1 | .. F0 F1 F2 F3 F4 F5 F6 F7 .. .. .. .. B0 B1 B2 B3 B4 B5 B6 B7 ..
stage 2 | .. .. F0 F1 F2 F3 F4 F5 F6 F7 .. .. B0 B1 B2 B3 B4 B5 B6 B7 .. ..
stage 3 | .. .. .. F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7 .. .. ..
)");
  CHECK(gpipe_grid(4, 2) == R"(
stage 0 | F0 F1 .. .. .. .. .. .. B0 B1
stage 1 | .. F0 F1 .. .. .. .. B0 B1 ..
stage 2 | .. .. F0 F1 .. .. B0 B1 .. ..
stage 3 | .. .. .. F0 F1 B0 B1 .. .. ..
)");
}

TEST_CASE("1f1b, drawn") {
  CHECK(one_f_one_b_grid(1, 3) == R"(
stage 0 | F0 B0 F1 B1 F2 B2
)");
  CHECK(one_f_one_b_grid(2, 4) == R"(
stage 0 | F0 F1 .. B0 F2 B1 F3 B2 .. B3
stage 1 | .. F0 B0 F1 B1 F2 B2 F3 B3 ..
)");
  CHECK(one_f_one_b_grid(4, 4) == R"(
stage 0 | F0 F1 F2 F3 .. .. .. B0 .. B1 .. B2 .. B3
stage 1 | .. F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3 ..
stage 2 | .. .. F0 F1 .. B0 F2 B1 F3 B2 .. B3 .. ..
stage 3 | .. .. .. F0 B0 F1 B1 F2 B2 F3 B3 .. .. ..
)");
  CHECK(one_f_one_b_grid(4, 8) == R"(
stage 0 | F0 F1 F2 F3 .. .. .. B0 F4 B1 F5 B2 F6 B3 F7 B4 .. B5 .. B6 .. B7
stage 1 | .. F0 F1 F2 .. .. B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 .. B6 .. B7 ..
stage 2 | .. .. F0 F1 .. B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 .. B7 .. ..
stage 3 | .. .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7 .. .. ..
)");
  CHECK(one_f_one_b_grid(4, 2) == R"(
stage 0 | F0 F1 .. .. .. .. .. B0 .. B1
stage 1 | .. F0 F1 .. .. .. B0 .. B1 ..
stage 2 | .. .. F0 F1 .. B0 .. B1 .. ..
stage 3 | .. .. .. F0 B0 F1 B1 .. .. ..
)");
}

TEST_CASE("columns stay in line from ten microbatches on") {
  CHECK("\n" + ScheduleGrid(forward_only(2, 11)).text() == R"(
stage 0 | F0  F1  F2  F3  F4  F5  F6  F7  F8  F9  F10 ..
stage 1 | ..  F0  F1  F2  F3  F4  F5  F6  F7  F8  F9  F10
)");
}

TEST_CASE("every action stands in the slot that the schedule's formula gives") {
  for (int p = 1; p <= 8; ++p) {
    for (index_t m = 1; m <= 12; ++m) {
      CAPTURE(p, m);
      const ScheduleGrid all_first(lower(gpipe(p, m))), alternating(lower(one_f_one_b(p, m)));
      for (int s = 0; s < p; ++s) {
        for (index_t k = 0; k < m; ++k) {
          CAPTURE(s, k);
          REQUIRE(all_first.slot_of(s, ActionKind::forward, k) == s + k);
          REQUIRE(all_first.slot_of(s, ActionKind::backward, k) == (m + p - 1) + (p - 1 - s) + k);
          REQUIRE(alternating.slot_of(s, ActionKind::forward, k) ==
                  (k < p - s ? s + k : s + 2 * k));
          REQUIRE(alternating.slot_of(s, ActionKind::backward, k) == 2 * p - 1 - s + 2 * k);
        }
      }
    }
  }
}

TEST_CASE("the bubble is (p-1)/(m+p-1) of the whole") {
  for (int p = 1; p <= 8; ++p) {
    for (index_t m = 1; m <= 12; ++m) {
      CAPTURE(p, m);
      for (const Schedule& schedule : {gpipe(p, m), one_f_one_b(p, m), forward_only(p, m)}) {
        const ScheduleGrid grid(schedule);
        REQUIRE(grid.num_slots() == (schedule.training ? 2 : 1) * (m + p - 1));
        // idle / all = (p-1)/(m+p-1), in integers
        REQUIRE(grid.num_idle_slots() * (m + p - 1) == (p - 1) * p * grid.num_slots());
        REQUIRE(grid.bubble_fraction() == static_cast<double>(grid.num_idle_slots()) /
                                              static_cast<double>(p * grid.num_slots()));
      }
    }
  }
}

TEST_CASE("a schedule that cannot end is not drawn") {
  const Schedule crossed =
      parse("2 stages, 2 microbatches, training\nstage 0: F0 B0 F1 B1\nstage 1: F0 F1 B0 B1\n");
  CHECK_THROWS_WITH(ScheduleGrid(crossed), Catch::Contains("stage 0: F0 B0 F1 B1"));
}

}  // namespace weft::pipeline
