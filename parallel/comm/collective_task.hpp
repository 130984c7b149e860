// A collective's algorithm as a state machine that can be resumed: it never blocks, so that several
// collectives and the computation between them share one thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>

namespace weft {

class CollectiveTask {
 public:
  virtual ~CollectiveTask() = default;
  // Goes on as far as arrived messages allow. True when all is done; not called after that.
  virtual bool step() = 0;
  // The group rank whose message is missing; -1 where none is.
  virtual int waiting_for() const = 0;
};

using TaskPointer = std::unique_ptr<CollectiveTask>;

// `first`, then what `make_second` returns when the first is done.
class TwoTasks final : public CollectiveTask {
 public:
  TwoTasks(TaskPointer first, std::function<TaskPointer()> make_second)
      : current_(std::move(first)), make_second_(std::move(make_second)) {}

  bool step() override {
    while (current_->step()) {
      if (!make_second_) return true;
      current_ = std::exchange(make_second_, nullptr)();
    }
    return false;
  }
  int waiting_for() const override { return current_->waiting_for(); }

 private:
  TaskPointer current_;
  std::function<TaskPointer()> make_second_;
};

// A task that was done when it was made.
class NoTask final : public CollectiveTask {
 public:
  bool step() override { return true; }
  int waiting_for() const override { return -1; }
};

}  // namespace weft
