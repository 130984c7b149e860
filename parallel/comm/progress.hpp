// Everything that one rank has under way, across all its groups. Whoever waits for one collective
// moves all of them: two ranks that wait for the same two collectives in different order still
// meet.
#pragma once

#include <chrono>
#include <vector>

#include "parallel/comm/staging.hpp"
#include "parallel/comm/waiter.hpp"

namespace weft {

class Operation;

// Used by the rank's main thread alone.
class Progress {
 public:
  explicit Progress(const WaitOptions& options = {}) : options_(options) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One step of each operation. True where something has moved. Throws what an operation
  // throws; that one is not stepped again.
  bool step_all();
  // Blocks. Throws Error(peer) after the deadline.
  void run_until_done(const Operation& operation);

  void add(Operation& operation) { active_.push_back(&operation); }
  void remove(const Operation& operation) noexcept { std::erase(active_, &operation); }

  // True once any operation has failed: the run is going down, and requests may be dropped.
  bool has_failed() const { return has_failed_; }
  const WaitOptions& options() const { return options_; }
  // Of the waits that begin from here on.
  void set_deadline(std::chrono::milliseconds deadline) { options_.deadline = deadline; }
  StagingPool& pool() { return pool_; }

 private:
  WaitOptions options_;
  StagingPool pool_;
  std::vector<Operation*> active_;  // in order of start
  bool has_failed_ = false;
};

}  // namespace weft
