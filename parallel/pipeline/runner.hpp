// Runs one stage's list of actions: the one engine for every schedule. What is computed is
// StageWork's, in which order the list's; the runner moves tensors between neighbours.
#pragma once

#include "core/context.hpp"
#include "core/shape.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/pipeline/schedule.hpp"
#include "parallel/pipeline/stage_work.hpp"

namespace weft::pipeline {

class Runner {
 public:
  // Rank s of `pp` is stage s. `lowered` must pass check(), else Error(failed) with its first
  // fault. Local. `context` and `pp` must outlive the runner.
  Runner(Context& context, Communicator& pp, const Schedule& lowered);

  // Collective over pp: the whole list, once. `boundary`: shape of every tensor between stages,
  // f32; alike on all, and for each run its own. What the next computation needs is received while
  // this one computes; sends go on meanwhile, and all are done at the end. An exception of the work
  // passes through: nothing is under way after it, and the run must go down (Transport::abort), for
  // the neighbours wait.
  void run(StageWork& work, const Shape& boundary);

 private:
  Context& context_;
  Communicator& pp_;
  std::vector<Action> actions_;  // this stage's
};

}  // namespace weft::pipeline
