#include "parallel/pipeline/lower.hpp"

#include "core/error.hpp"

namespace weft::pipeline {

namespace {

void lower_into(std::vector<Action>& lowered, const Action& action, int last_stage) {
  const auto message = [&](ActionKind kind, bool exists) {
    if (exists) lowered.push_back({action.stage, kind, action.microbatch, action.chunk});
  };
  const bool has_previous = action.stage > 0;
  const bool has_next = action.stage < last_stage;
  switch (action.kind) {
    case ActionKind::forward:
      message(ActionKind::receive_activation, has_previous);
      lowered.push_back(action);
      message(ActionKind::send_activation, has_next);
      return;
    case ActionKind::backward:
      message(ActionKind::receive_gradient, has_next);
      lowered.push_back(action);
      message(ActionKind::send_gradient, has_previous);
      return;
    default:
      throw Error(ExitCode::failed, "stage " + std::to_string(action.stage) +
                                        ": the schedule has messages already (" + text_of(action) +
                                        "), it cannot be lowered again");
  }
}

}  // namespace

Schedule lower(const Schedule& schedule) {
  Schedule lowered{schedule.num_microbatches, schedule.training, {}};
  for (const std::vector<Action>& actions : schedule.stages) {
    lowered.stages.emplace_back();
    for (const Action& action : actions)
      lower_into(lowered.stages.back(), action, schedule.num_stages() - 1);
  }
  return lowered;
}

}  // namespace weft::pipeline
