// How a pipeline's blocks are best cut into stages, by what each stage was measured to take, and
// what a schedule then takes. Plain arithmetic; who measures, and what a block is, is the caller's
// business.
#pragma once

#include <vector>

#include "parallel/pipeline/schedule.hpp"

namespace weft::pipeline {

// What a microbatch takes on a stage, in one unit of time throughout.
struct PassTime {
  double forward = 0.0;
  double backward = 0.0;
  double both() const { return forward + backward; }
  friend bool operator==(const PassTime&, const PassTime&) = default;
};

// On a stage's own ranks, which may be slower than another's: what is there whatever blocks it has
// (the model's input or head, say), and one block. Blocks are alike; so where they take unlike
// times, ranks differ.
struct StageCost {
  PassTime fixed;
  PassTime block;
  PassTime of(index_t num_blocks) const;
};

std::vector<PassTime> times_of(const std::vector<StageCost>& costs,
                               const std::vector<index_t>& blocks);

// From the beginning of the schedule's first computation to the end of its last one: each stage
// does its list in order, as early as inputs allow; messages take no time. Throws Error(failed)
// where the schedule cannot run.
double length_of(const Schedule& schedule, const std::vector<PassTime>& stages);

// What best_split() makes least: a microbatch goes through all stages, and the m - 1 others come
// out behind it, one in the time of the slowest stage. That is the length of gpipe's schedule where
// all stages have their forward and backward in one proportion.
double flow_time(const std::vector<PassTime>& stages, index_t num_microbatches);

// Blocks of each stage, one or more, in all `num_blocks`: of all such lists one with the least
// flow_time(): exactly, by dynamic programming. Needs as many blocks as stages.
std::vector<index_t> best_split(const std::vector<StageCost>& costs, index_t num_blocks,
                                index_t num_microbatches);

// From `blocks` on, one block goes from one stage to another as long as that shortens the
// schedule: where forward and backward are in unlike proportions, or one is waited for, its length
// is not flow_time().
std::vector<index_t> refine_split(const Schedule& schedule, const std::vector<StageCost>& costs,
                                  std::vector<index_t> blocks);

}  // namespace weft::pipeline
