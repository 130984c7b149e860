// How much of a core a thread beside the steps takes: between two blocks of its work it rests, so
// that it works no more than a share of the time. Where someone waits for the work it does not.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace weft {

class WorkPace {
 public:
  // `share` of a core, above 0; 1 or more: it never rests.
  explicit WorkPace(double share = 1.0) : share_(share) {}
  WorkPace(const WorkPace&) = delete;
  WorkPace& operator=(const WorkPace&) = delete;

  // None at work.
  void set_share(double share) { share_ = share; }
  double share() const { return share_; }

  // The thread at work, before its first block: what it did before does not count.
  void begin();
  // The thread at work, between two blocks: rests as long as its processor time since the last rest
  // asks for, if that is worth it. Waiting for a disk is no work. Ends at once where a stop is
  // requested.
  void rest(const std::stop_token& stop);

  // Any thread: ends the rest under way and lets none begin until relax().
  void hurry();
  void relax();
  // Any thread: all rests since the object was made, that under way left out.
  double rested_s() const;

 private:
  double share_;
  double worked_until_s_ = 0.0;  // processor time of the thread at work, at its last rest
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_urgent_ = false;  // guarded by mutex_, as all below
  double rested_s_ = 0.0;
};

}  // namespace weft
