#include "parallel/comm/progress.hpp"

#include "parallel/comm/operation.hpp"

namespace weft {

bool Progress::step_all() {
  bool moved = false;
  for (std::size_t i = 0; i < active_.size();) {
    Operation& operation = *active_[i];
    try {
      moved |= operation.step();
    } catch (...) {
      has_failed_ = true;
      remove(operation);
      throw;
    }
    if (operation.is_done()) {
      remove(operation);
    } else {
      ++i;
    }
  }
  return moved;
}

void Progress::run_until_done(const Operation& operation) {
  Waiter waiter(options_);
  while (!operation.is_done()) {
    const bool moved = step_all();
    if (operation.is_done()) return;
    if (moved) {
      waiter.restart();
    } else if (!waiter.pause()) {
      has_failed_ = true;
      throw Error(ExitCode::peer, operation.deadline_message());
    }
  }
}

}  // namespace weft
