// Splits by measured times against every split there is, and lengths of schedules against grids
// drawn by hand and the papers' formulas.
#include <catch2/catch.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "core/error.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"
#include "parallel/pipeline/stage_split.hpp"

namespace weft::pipeline {

namespace {

using Blocks = std::vector<index_t>;
using Random = std::mt19937_64;

// Every list of `num_stages` numbers of at least 1 that add up to `num_blocks`.
std::vector<Blocks> all_splits(index_t num_stages, index_t num_blocks) {
  if (num_stages == 1) return {{num_blocks}};
  std::vector<Blocks> all;
  for (index_t first = 1; first <= num_blocks - num_stages + 1; ++first) {
    for (Blocks rest : all_splits(num_stages - 1, num_blocks - first)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

// Whole numbers, so that sums are exact in any order; a microbatch through all, then one after the
// other out of the slowest.
double time_of(const std::vector<StageCost>& costs, const Blocks& blocks, index_t microbatches) {
  double sum = 0.0, slowest = 0.0;
  for (std::size_t s = 0; s < costs.size(); ++s) {
    const double k = static_cast<double>(blocks[s]);
    const double time = costs[s].fixed.forward + costs[s].fixed.backward +
                        k * (costs[s].block.forward + costs[s].block.backward);
    sum += time;
    slowest = std::max(slowest, time);
  }
  return sum + slowest * static_cast<double>(microbatches - 1);
}

std::vector<StageCost> random_costs(Random& random, index_t num_stages) {
  const auto draw = [&](int least, int most) {
    return static_cast<double>(std::uniform_int_distribution<int>(least, most)(random));
  };
  std::vector<StageCost> costs;
  for (index_t s = 0; s < num_stages; ++s) {
    const int most_fixed = draw(0, 1) > 0 ? 0 : 40;
    costs.push_back(
        {.fixed = {draw(0, most_fixed), draw(0, most_fixed)}, .block = {draw(1, 9), draw(0, 20)}});
  }
  return costs;
}

StageCost even_cost(double fixed, double block) { return {{fixed, 2 * fixed}, {block, 2 * block}}; }

}  // namespace

TEST_CASE("no split is quicker than the one that is found") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Random random(seed);
  int num_uneven = 0;
  for (int i = 0; i < 400; ++i) {
    const index_t stages = 1 + static_cast<index_t>(random() % 5);
    const index_t blocks = stages + static_cast<index_t>(random() % 8);
    const index_t microbatches = 1 + static_cast<index_t>(random() % 20);
    const std::vector<StageCost> costs = random_costs(random, stages);
    double least = std::numeric_limits<double>::infinity();
    const std::vector<Blocks> all = all_splits(stages, blocks);
    for (const Blocks& split : all) least = std::min(least, time_of(costs, split, microbatches));
    const Blocks found = best_split(costs, blocks, microbatches);
    REQUIRE(std::count(all.begin(), all.end(), found) == 1);
    REQUIRE(time_of(costs, found, microbatches) == least);
    const auto [smallest, largest] = std::minmax_element(found.begin(), found.end());
    num_uneven += *largest > *smallest + 1 ? 1 : 0;
  }
  CHECK(num_uneven > 50);
}

TEST_CASE("of all splits none makes the schedule much shorter than the refined one") {
  const std::uint64_t seed = std::random_device{}();
  INFO("seed " << seed);
  Random random(seed);
  int num_best = 0, num_moved = 0;
  constexpr int num_tries = 300;
  for (int i = 0; i < num_tries; ++i) {
    const index_t stages = 2 + static_cast<index_t>(random() % 3);
    const index_t blocks = stages + static_cast<index_t>(random() % 6);
    const index_t microbatches = 1 + static_cast<index_t>(random() % 12);
    const std::vector<StageCost> costs = random_costs(random, stages);
    const Schedule schedule = random() % 2 == 0
                                  ? gpipe(static_cast<int>(stages), microbatches)
                                  : one_f_one_b(static_cast<int>(stages), microbatches);
    const auto length = [&](const Blocks& split) {
      return length_of(schedule, times_of(costs, split));
    };
    double least = std::numeric_limits<double>::infinity();
    for (const Blocks& split : all_splits(stages, blocks)) least = std::min(least, length(split));
    const Blocks begin = best_split(costs, blocks, microbatches);
    const Blocks found = refine_split(schedule, costs, begin);
    REQUIRE(std::accumulate(found.begin(), found.end(), index_t{0}) == blocks);
    REQUIRE(length(found) <= length(begin));
    REQUIRE(length(found) <= 1.05 * least);
    num_best += length(found) == least ? 1 : 0;
    num_moved += found != begin ? 1 : 0;
  }
  CHECK(num_best > num_tries * 9 / 10);
  CHECK(num_moved > num_tries / 20);
}

TEST_CASE("splits that one can see") {
  // Two stages alike, six blocks; the first has work for so many more.
  CHECK(best_split({even_cost(2, 1), even_cost(0, 1)}, 6, 8) == Blocks{2, 4});
  CHECK(best_split({even_cost(4, 1), even_cost(0, 1)}, 6, 8) == Blocks{1, 5});
  // A rank of half the speed gets a third of the blocks.
  CHECK(best_split({even_cost(0, 1), even_cost(0, 2)}, 12, 16) == Blocks{8, 4});
  CHECK(best_split({even_cost(0, 1), even_cost(0, 1), even_cost(0, 1)}, 12, 4) == Blocks{4, 4, 4});
  // One microbatch passes through all stages: the quickest rank has all but what each must have.
  CHECK(best_split({even_cost(0, 3), even_cost(0, 2), even_cost(0, 3)}, 9, 1) == Blocks{1, 7, 1});
  // As many blocks as stages: there is one split.
  CHECK(best_split({even_cost(9, 1), even_cost(0, 5)}, 2, 4) == Blocks{1, 1});
  CHECK(best_split({even_cost(1, 1)}, 7, 4) == Blocks{7});
  CHECK_THROWS_AS(best_split({even_cost(1, 1), even_cost(1, 1)}, 1, 4), Error);
}

TEST_CASE("a long model on many stages is split at once") {
  std::vector<StageCost> costs;
  for (int s = 0; s < 16; ++s) costs.push_back(even_cost(s % 3, 1 + 0.01 * s));
  const Blocks found = best_split(costs, 256, 64);
  CHECK(std::accumulate(found.begin(), found.end(), index_t{0}) == 256);
}

TEST_CASE("the length of stages alike is the papers'") {
  for (const index_t m : {1, 2, 4, 5, 16}) {
    for (const int p : {1, 2, 3, 4, 7}) {
      INFO(p << " stages, " << m << " microbatches");
      const std::vector<PassTime> stages(static_cast<std::size_t>(p), PassTime{2.0, 4.0});
      const double length = 6.0 * static_cast<double>(m + p - 1);
      CHECK(length_of(gpipe(p, m), stages) == length);
      CHECK(length_of(one_f_one_b(p, m), stages) == length);
      CHECK(flow_time(stages, m) == length);
      // Messages take no time.
      CHECK(length_of(lower(one_f_one_b(p, m)), stages) == length);
    }
  }
}

TEST_CASE("the length of unlike stages, drawn by hand") {
  // stage 0 | F0 F1 -- -- -- B0B0 B1B1         forward 1, backward 2
  // stage 1 | -- F0F0 F1F1 B0.. (3 each)       forward 2, backward 3
  const std::vector<PassTime> stages = {{1, 2}, {2, 3}};
  // F0 ends at 3, F1 at 5, B0 at 8, B1 at 11; then stage 0's B1.
  CHECK(length_of(gpipe(2, 2), stages) == 13);
  // 1f1b: stage 1: F0 1-3, B0 3-6, F1 6-8, B1 8-11; stage 0: B1 11-13.
  CHECK(length_of(one_f_one_b(2, 2), stages) == 13);
  // The first stage is the slow one: F0 0-4, F1 4-8; stage 1: F0 4-5, F1 8-9, B0, B1 9-11;
  // stage 0: B0 10-18, B1 18-26.
  CHECK(length_of(gpipe(2, 2), {{4, 8}, {1, 1}}) == 26);
  // 1f1b: stage 1: F0 4-5, B0 5-6, F1 8-9, B1 9-10; stage 0: F1 4-8, B0 8-16, B1 16-24.
  CHECK(length_of(one_f_one_b(2, 2), {{4, 8}, {1, 1}}) == 24);
  // Forward alone: 3 + 2 x 3, then the second stage's last one.
  CHECK(length_of(forward_only(2, 3), {{3, 0}, {1, 0}}) == 10);
  CHECK_THROWS_AS(length_of(gpipe(2, 2), {{1, 1}}), Error);
  Schedule stuck = gpipe(2, 1);
  std::swap(stuck.stages[0][0], stuck.stages[0][1]);
  CHECK_THROWS_AS(length_of(stuck, stages), Error);
}

TEST_CASE("what splits are judged by is the length of gpipe's schedule, and 1f1b's is no longer") {
  Random random(7);
  for (int i = 0; i < 300; ++i) {
    const index_t p = 1 + static_cast<index_t>(random() % 5);
    const index_t m = 1 + static_cast<index_t>(random() % 12);
    std::vector<PassTime> stages;
    for (index_t s = 0; s < p; ++s) {
      const auto forward = static_cast<double>(1 + random() % 9);
      stages.push_back({forward, 2 * forward});
    }
    INFO(p << " stages, " << m << " microbatches");
    CHECK(length_of(gpipe(static_cast<int>(p), m), stages) == flow_time(stages, m));
    CHECK(length_of(one_f_one_b(static_cast<int>(p), m), stages) <= flow_time(stages, m));
  }
}

}  // namespace weft::pipeline
