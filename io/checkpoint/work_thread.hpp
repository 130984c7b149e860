// A thread for work that must not hold up its owner: one piece at a time, begun and waited for by
// the owner. It calls neither Kokkos nor a communicator; the work must not, either.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace weft {

class WorkThread {
 public:
  // Must not throw. Returns soon once a stop is requested: its owner wants to end.
  using Work = std::function<void(std::stop_token)>;

  WorkThread();
  ~WorkThread();  // requests a stop, and waits for the work under way
  WorkThread(const WorkThread&) = delete;
  WorkThread& operator=(const WorkThread&) = delete;

  // The piece before must have been seen to be done.
  void start(Work work);
  // What the work wrote is the owner's to read once it is.
  bool is_done() const;
  void wait() const;

 private:
  void run(const std::stop_token& stop);

  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  Work work_;            // guarded by mutex_; null: none is under way
  std::jthread thread_;  // last: everything above exists before it starts
};

}  // namespace weft
