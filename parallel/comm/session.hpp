// The run as its launcher made it: the processes, their ranks, and what they need before there are
// transports, and after. One a process, made first and gone last. Transports are made on top of it
// (transport_registry), one after another or side by side.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "parallel/comm/peer_watch.hpp"
#include "parallel/comm/waiter.hpp"

namespace weft {

// How to wait in a session. Ranks that have no part in a layout wait long, on purpose.
struct SessionWait {
  std::function<void()> meanwhile = {};                    // called again and again
  std::optional<std::chrono::milliseconds> deadline = {};  // else the session's
};

// All calls come from the process' main thread.
class Session {
 public:
  // Collective. Orderly: waits for all ranks, so that none takes another's end for a death. During
  // an exception it ends the run instead.
  virtual ~Session() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The transport that needs nothing but what this session is made of: "mpi", or "local" where the
  // session has one process and no launcher.
  virtual std::string_view own_transport() const = 0;

  // Of everything that waits for all ranks of the session, from here on; local. A session of its
  // first ranks begins with the same.
  void set_deadline(std::chrono::milliseconds deadline) { deadline_ = deadline; }
  std::chrono::milliseconds deadline() const { return deadline_; }

  // Collective: each rank's bytes, in rank order; lengths may differ. Throws Error(peer) when a
  // rank has died, or when the deadline has passed: `place`, "the run's end" say, is then what some
  // rank has not come to.
  virtual std::vector<std::string> all_gather(std::string_view place, std::string_view mine,
                                              const SessionWait& wait = {}) = 0;

  // Collective: a session of the first `num_ranks` ranks, with the same numbers; null on the
  // others. It must go before this one.
  virtual std::unique_ptr<Session> first_ranks(int num_ranks) = 0;

  // Of the whole run, also in a session of the first ranks.
  virtual PeerWatch& watch() = 0;

  // Says `reason` and ends every rank of the run; does not return.
  [[noreturn]] virtual void abort(ExitCode code, const std::string& reason) noexcept = 0;

 private:
  std::chrono::milliseconds deadline_ = WaitOptions{}.deadline;
};

// One process, without a launcher.
std::unique_ptr<Session> make_session_of_one();

}  // namespace weft
