#include "parallel/pipeline/schedule_grid.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace weft::pipeline {

namespace {

std::vector<std::vector<Action>> computations_of(const Schedule& schedule) {
  std::vector<std::vector<Action>> lists;
  for (const std::vector<Action>& actions : schedule.stages) {
    lists.emplace_back();
    for (const Action& action : actions) {
      if (is_compute(action.kind)) lists.back().push_back(action);
    }
  }
  return lists;
}

}  // namespace

ScheduleGrid::ScheduleGrid(const Schedule& schedule) : rows_(schedule.stages.size()) {
  const std::vector<std::vector<Action>> lists = computations_of(schedule);
  std::vector<std::size_t> next(lists.size());
  // Slot by slot: an action begins when what it needs ended in an earlier slot.
  bool all_done = false;
  while (!all_done) {
    all_done = true;
    bool moved = false;
    std::vector<std::optional<Action>> column(lists.size());
    for (std::size_t stage = 0; stage < lists.size(); ++stage) {
      if (next[stage] == lists[stage].size()) continue;
      all_done = false;
      const Action& action = lists[stage][next[stage]];
      const auto needed = needed_by(action, schedule.num_stages() - 1);
      if (needed && slot_of(needed->stage, needed->kind, needed->microbatch) < 0) continue;
      column[stage] = action;
      ++next[stage];
      moved = true;
    }
    require(moved || all_done, ExitCode::failed,
            "the schedule cannot be drawn, it does not come to its end:\n" + print(schedule));
    if (all_done) break;
    for (std::size_t stage = 0; stage < lists.size(); ++stage)
      rows_[stage].push_back(column[stage]);
    ++num_slots_;
  }
}

index_t ScheduleGrid::slot_of(int stage, ActionKind kind, index_t microbatch) const {
  const auto& row = rows_[static_cast<std::size_t>(stage)];
  const auto slot = std::find_if(row.begin(), row.end(), [&](const std::optional<Action>& action) {
    return action && action->kind == kind && action->microbatch == microbatch;
  });
  return slot == row.end() ? -1 : static_cast<index_t>(slot - row.begin());
}

index_t ScheduleGrid::num_idle_slots() const {
  index_t count = 0;
  for (const auto& row : rows_) count += std::count(row.begin(), row.end(), std::nullopt);
  return count;
}

double ScheduleGrid::bubble_fraction() const {
  const auto num_stages = static_cast<double>(rows_.size());
  return static_cast<double>(num_idle_slots()) / (num_stages * static_cast<double>(num_slots_));
}

std::string ScheduleGrid::text() const {
  std::size_t width = 0;
  for (const auto& row : rows_) {
    for (const auto& action : row) width = std::max(width, action ? text_of(*action).size() : 2);
  }
  std::string text;
  for (std::size_t stage = 0; stage < rows_.size(); ++stage) {
    text += "stage " + std::to_string(stage) + " |";
    for (const auto& action : rows_[stage]) {
      const std::string word = action ? text_of(*action) : "..";
      text.append(" ").append(word);
      text.append(&action == &rows_[stage].back() ? 0 : width - word.size(), ' ');
    }
    text += "\n";
  }
  return text;
}

}  // namespace weft::pipeline
