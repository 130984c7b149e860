// Median, P95 and throughput against values by hand: which steps are measured, and which rank of
// the sorted times each figure is.
#include <catch2/catch.hpp>

#include "apps/step_statistics.hpp"

using weft::StepStatistics;

TEST_CASE("twenty steps warm up; of fewer than forty, half") {
  const auto steps = GENERATE(table<std::size_t, std::size_t>(
      {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {10, 5}, {39, 19}, {40, 20}, {41, 20}, {100000, 20}}));
  StepStatistics times;
  for (std::size_t i = 0; i < std::get<0>(steps); ++i) times.add(1.0, 1.0);
  CHECK(times.warm_up_steps() == std::get<1>(steps));
  CHECK(times.measured_steps() == std::get<0>(steps) - std::get<1>(steps));
}

TEST_CASE("warm-up counts nowhere; median and P95 are times that occurred") {
  StepStatistics times;
  for (int i = 0; i < 20; ++i) times.add(1000.0, 7.0);
  for (int ms = 100; ms >= 1; --ms) times.add(ms, 2.0);
  CHECK(times.measured_steps() == 100);
  CHECK(times.median_ms() == 50.0);
  CHECK(times.p95_ms() == 95.0);
  // 100 steps of 2 effective samples in 1 + 2 + .. + 100 = 5050 ms.
  CHECK(times.samples_per_second() == Approx(200 / 5.050).epsilon(1e-15));
}

TEST_CASE("few steps: the course's figure of one device, and no step at all") {
  StepStatistics times;
  CHECK(times.median_ms() == 0.0);
  CHECK(times.samples_per_second() == 0.0);
  times.add(500.0, 128.0);
  times.add(84.0, 128.0);
  CHECK(times.measured_steps() == 1);
  CHECK(times.median_ms() == 84.0);
  CHECK(times.p95_ms() == 84.0);
  CHECK(times.samples_per_second() == Approx(1523.8).epsilon(1e-4));  // 1,524/s, rounded
}

TEST_CASE("a warm-up of one's own choice") {
  StepStatistics times(2);
  times.add(9.0, 1.0);
  CHECK(times.measured_steps() == 0);
  CHECK(times.median_ms() == 0.0);
  times.add(8.0, 1.0);
  times.add(3.0, 1.0);
  CHECK(times.measured_steps() == 1);
  CHECK(times.p95_ms() == 3.0);
}
