// Judges a lowered schedule before anything runs: the order that exact mode asks for, and whether
// all ranks together come to their ends.
#pragma once

#include <string>
#include <vector>

#include "parallel/pipeline/schedule.hpp"

namespace weft::pipeline {

struct ScheduleCheck {
  std::vector<std::string> faults;        // none: the schedule may run
  std::vector<index_t> peak_activations;  // by stage: microbatches whose forward is kept at once
};

// On each stage: every forward and (training) every backward once, in increasing order of
// microbatches, a backward after its forward, each after its message has come and before its result
// goes. On all together, receives block: once with sends that are buffered, once with sends that
// start without blocking and end only when they are received. Faults name stage and action; those
// of a deadlock say who waits for what.
ScheduleCheck check(const Schedule& lowered);

}  // namespace weft::pipeline
