// Are the other processes of the run alive? A thread sleeps on the kernel's handles of those on
// this host; UCX reports what it notices on others. It knows nothing of messages, and sees the
// dead, not the stuck: for those there is the deadline of every wait.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weft {

// A process as others can find it again.
struct ProcessIdentity {
  std::string boot_id;        // of the running kernel: one a host
  std::string pid_namespace;  // ids mean the same inside one only
  std::string host;
  std::string start_time;  // clock ticks since boot: an id is used again, id and start time are not
  int pid = 0;

  static ProcessIdentity mine();
  std::string text() const;  // for the way to another rank
  static ProcessIdentity from_text(const std::string& text);
};

class PeerWatch {
 public:
  struct Options {
    // Between a death and its being told: a launcher that ends the run by itself, or a rank that
    // ends it for a reason of its own, comes first.
    std::chrono::milliseconds grace{100};
    // From then on the main thread has this long to come to its end; then the process ends here.
    std::chrono::milliseconds patience{1000};
    // The same once leave() was called: others end when they are through, and this process must
    // follow them.
    std::chrono::milliseconds leaving_patience{4000};
    // What the thread then does before, the reason being said.
    std::function<void(const PeerWatch&)> last_act = {};
  };

  // `processes`: of all ranks, this one included, in rank order. Starts the thread. Throws
  // Error(failed) where the system has no descriptors left.
  PeerWatch(int rank, std::vector<ProcessIdentity> processes, Options options);
  PeerWatch(int rank, std::vector<ProcessIdentity> processes)
      : PeerWatch(rank, std::move(processes), Options{}) {}
  ~PeerWatch() { stop(); }
  PeerWatch(const PeerWatch&) = delete;
  PeerWatch& operator=(const PeerWatch&) = delete;

  std::string name_of(int rank) const;  // "rank 3 (pid 4711 on host node7)"
  bool is_one_host() const;

  // Cheap. Throws Error(peer), which names the rank, once one has died.
  void require_alive() const {
    if (has_death_.load(std::memory_order_acquire)) fail();
  }
  bool has_death() const { return has_death_.load(std::memory_order_acquire); }
  // Blocks: true as soon as one has died, false once `time` is over.
  bool has_death_within(std::chrono::milliseconds time) const;
  // Who has died; empty: nobody that is known of.
  std::string cause() const;

  // Another source: connections to `rank` broke. Counts as its death, after the grace.
  void report_lost(int rank, const std::string& why) noexcept;

  // True where no rank below this one lives on this host: one rank a host, to act for all.
  bool is_first_alive() const;
  // Blocks. True once all other ranks of the run have ended; false after `time`, as always where
  // some of them cannot be seen from here.
  bool others_end_within(std::chrono::milliseconds time) const;

  // All ranks are about to leave in order, by calls that may wait for each other (MPI_Finalize):
  // from here on an ending is no death, but this process must come to stop() soon after it.
  void leave() noexcept { is_leaving_.store(true, std::memory_order_release); }
  // From here on an ending is none. Idempotent.
  void stop() noexcept;

  // True for the first caller: who may say why the run ends. One message a process.
  bool take_last_word() noexcept { return !is_last_word_taken_.exchange(true); }

 private:
  class Descriptor {
   public:
    explicit Descriptor(int number = -1) : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor();
    int number() const { return number_; }

   private:
    int number_;
  };
  struct Handle {
    int rank;
    Descriptor process;  // none to be had: /proc tells, if late
  };
  // Who died first. `why` is empty where its end was seen, else who reported it, and what.
  struct Cause {
    int rank = -1;  // none yet
    std::string why = {};
  };

  void open_handles();
  void run();
  bool wait_for_death();  // false: stopped before
  bool stops_within(std::chrono::milliseconds time) const;
  bool has_ended(const Handle& handle) const;
  void set_cause(int rank, const std::string& why);
  void prefer_what_was_seen();
  [[noreturn]] void fail() const;

  int rank_;
  std::vector<ProcessIdentity> processes_;
  Options options_;
  std::vector<Handle> handles_;  // of the others on this host; constant once the thread runs
  Descriptor stop_event_, report_event_;
  std::atomic<bool> has_death_{false};
  std::atomic<bool> is_leaving_{false};
  std::atomic<bool> is_last_word_taken_{false};
  mutable std::mutex mutex_;
  Cause cause_;  // under mutex_
  std::thread thread_;
};

}  // namespace weft
