#include "parallel/pipeline/generators.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace weft::pipeline {

namespace {

Schedule empty_schedule(int num_stages, index_t num_microbatches, bool training) {
  require(num_stages >= 1 && num_microbatches >= 1, ExitCode::usage,
          "a pipeline of " + std::to_string(num_stages) + " stages and " +
              std::to_string(num_microbatches) + " microbatches; both must be at least 1");
  Schedule schedule{num_microbatches, training, {}};
  schedule.stages.resize(static_cast<std::size_t>(num_stages));
  return schedule;
}

// One stage's list as it grows; microbatches count up by themselves.
class StageList {
 public:
  StageList(std::vector<Action>& actions, int stage) : actions_(actions), stage_(stage) {}

  void forward() { actions_.push_back({stage_, ActionKind::forward, num_forwards_++}); }
  void backward() { actions_.push_back({stage_, ActionKind::backward, num_backwards_++}); }

 private:
  std::vector<Action>& actions_;
  int stage_;
  index_t num_forwards_ = 0;
  index_t num_backwards_ = 0;
};

}  // namespace

Schedule gpipe(int num_stages, index_t num_microbatches) {
  Schedule schedule = empty_schedule(num_stages, num_microbatches, true);
  for (int stage = 0; stage < num_stages; ++stage) {
    std::vector<Action>& actions = schedule.stages[static_cast<std::size_t>(stage)];
    StageList list(actions, stage);
    for (index_t i = 0; i < num_microbatches; ++i) list.forward();
    for (index_t i = 0; i < num_microbatches; ++i) list.backward();
  }
  return schedule;
}

Schedule one_f_one_b(int num_stages, index_t num_microbatches) {
  Schedule schedule = empty_schedule(num_stages, num_microbatches, true);
  for (int stage = 0; stage < num_stages; ++stage) {
    StageList list(schedule.stages[static_cast<std::size_t>(stage)], stage);
    const index_t warm_up = std::min<index_t>(num_stages - 1 - stage, num_microbatches);
    for (index_t i = 0; i < warm_up; ++i) list.forward();
    for (index_t i = warm_up; i < num_microbatches; ++i) {
      list.forward();
      list.backward();
    }
    for (index_t i = 0; i < warm_up; ++i) list.backward();
  }
  return schedule;
}

Schedule forward_only(int num_stages, index_t num_microbatches) {
  Schedule schedule = empty_schedule(num_stages, num_microbatches, false);
  for (int stage = 0; stage < num_stages; ++stage) {
    StageList list(schedule.stages[static_cast<std::size_t>(stage)], stage);
    for (index_t i = 0; i < num_microbatches; ++i) list.forward();
  }
  return schedule;
}

Schedule make_schedule(std::string_view name, int num_stages, index_t num_microbatches) {
  if (name == "gpipe") return gpipe(num_stages, num_microbatches);
  require(name == "1f1b", ExitCode::usage,
          "no schedule is called '" + std::string(name) + "'; there are gpipe and 1f1b");
  return one_f_one_b(num_stages, num_microbatches);
}

}  // namespace weft::pipeline
