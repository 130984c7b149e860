// A schedule drawn over time, and what it idles at best: the picture that one checks a schedule by.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/pipeline/schedule.hpp"

namespace weft::pipeline {

// Forward and backward take one slot each, messages none; each stage does its actions in order, as
// early as its inputs allow. (With backwards of two slots the bubble is the same part of the
// whole.)
//
//   stage 0 | F0 F1 .. B0 F2 B1 .. B2
//   stage 1 | .. F0 B0 F1 B1 F2 B2 ..
class ScheduleGrid {
 public:
  // Messages in the list are passed over. Throws Error(failed) where the schedule cannot run.
  explicit ScheduleGrid(const Schedule& schedule);

  std::string text() const;
  index_t num_slots() const { return num_slots_; }
  index_t num_idle_slots() const;  // over all stages
  // The first slot of an action of that stage; -1 where it has none.
  index_t slot_of(int stage, ActionKind kind, index_t microbatch) const;
  // Idle part of all slots: (p-1)/(m+p-1) for gpipe and 1f1b.
  double bubble_fraction() const;

 private:
  std::vector<std::vector<std::optional<Action>>> rows_;  // [stage][slot]
  index_t num_slots_ = 0;
};

}  // namespace weft::pipeline
