// UCX's objects of one process: its worker and the connections to the other ranks. What the files
// that call UCX share; nobody else includes it.
#pragma once

#include <ucp/api/ucp.h>

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "parallel/comm/peer_watch.hpp"

namespace weft {

// UCX logs to standard output, which is ours. Its warnings and errors go to standard error, or,
// while a worker is made, into the error that we throw.
class UcxLog {
 public:
  static UcxLog& instance();

  void collect();
  std::string collected();  // ends collecting
  void take(const std::string& line);

 private:
  UcxLog();

  std::mutex mutex_;  // UCX has a thread of its own
  bool is_collecting_ = false;
  std::string text_;
};

class UcxWorker {
 public:
  // Sets the environment's UCX_* variables that are not set. Throws Error(usage) with UCX's reason.
  explicit UcxWorker(PeerWatch& watch);
  // Frees only what close() has closed: else something may still read or write buffers, and the
  // worker stays, motionless, until the process ends.
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  std::string address() const;
  // Throws Error(usage) where a rank cannot be reached.
  void connect(int my_rank, const std::vector<std::string>& addresses);
  // This rank has all its messages: a connection that breaks from here on is no news.
  void expect_endings() { is_ending_ = true; }
  // Local; after all ranks have come to expect_endings().
  void close();

  ucp_worker_h handle() const { return worker_; }
  ucp_ep_h endpoint(int rank) const { return peers_[static_cast<std::size_t>(rank)].endpoint; }

  void progress();  // throws after freeze()
  void idle() {     // the same, where nothing is waited for
    if (!is_frozen_) num_events_ += ucp_worker_progress(worker_);
  }
  // Of progress() and idle() so far, fragments of messages included.
  std::uint64_t num_events() const { return num_events_; }
  // For a message that cannot be withdrawn and loses its buffer: nothing moves from here on.
  void freeze() { is_frozen_ = true; }
  // Until everything accepted has left this process, or `time` is over.
  void flush(std::chrono::milliseconds time);

  void require_alive() const { watch_.require_alive(); }
  // Tells the watch and throws what became of a message to or from `rank`, of which UCX says
  // `status`.
  [[noreturn]] void fail(int rank, ucs_status_t status) const;

 private:
  struct Peer {
    UcxWorker* worker = nullptr;
    int rank = -1;
    ucp_ep_h endpoint = nullptr;
  };
  static void lost(void* peer, ucp_ep_h, ucs_status_t status);

  PeerWatch& watch_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<Peer> peers_;
  bool is_frozen_ = false;
  std::uint64_t num_events_ = 0;
  bool is_ending_ = false;
  bool is_closed_ = false;
};

}  // namespace weft
