// Ranks that are threads of one process: for tests, and (with one rank) for runs without MPI. A
// message is one memcpy, made by whichever side comes second. Not a way to run a job in parallel.
#pragma once

#include <functional>
#include <memory>

#include "parallel/comm/transport.hpp"

namespace weft {

class LocalWorld {
 public:
  explicit LocalWorld(int size);
  ~LocalWorld();
  LocalWorld(const LocalWorld&) = delete;
  LocalWorld& operator=(const LocalWorld&) = delete;

  int size() const;
  // The transport of `rank`, to be used by one thread. May outlive the world.
  std::unique_ptr<Transport> make_transport(int rank) const;

  // Wakes every rank with Error(peer). Any thread may call it.
  void abort(ExitCode code, const std::string& reason) noexcept;

  struct State;

 private:
  std::shared_ptr<State> state_;
};

// Runs body(transport) on `num_ranks` threads and waits for all of them. When one throws, the
// others are woken with Error(peer), and the exception that came first is thrown here.
void run_ranks(int num_ranks, const std::function<void(Transport&)>& body);

}  // namespace weft
