// Whether a run is to stop: all ranks find the same answer after the same step, though a signal
// may have come to one of them alone, and though only rank 0's clock counts for the time limit.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "apps/stop_signals.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/comm/request.hpp"

namespace weft {

enum class StopReason : std::uint8_t { none, sigterm, sigusr1, time_limit };
std::string_view name_of(StopReason reason);  // "SIGTERM", "SIGUSR1", "time limit"

// Each rank's word is on its way while the step is computed, two bytes to every other rank: some
// 2 us a step on two ranks of a host. Rank 0's also says whether its clock wants a checkpoint. A
// request is met one or two steps after it came. A run that is started takes one step at least,
// whatever comes: rerun again and again, it ends.
class StopVote {
 public:
  // `limit_s`: seconds of `signals`' clock, 0: none. Both must outlive it.
  StopVote(Communicator& world, const StopSignals& signals, double limit_s);

  // Collective, before each step. `longest_save_s`: what a save after the step can take.
  // `asks_for_save` counts on rank 0 alone.
  void start(double longest_save_s, bool asks_for_save = false);
  // Collective, after it: whether it was the last one. Of several ranks' reasons the first rank's.
  StopReason wait();
  // After it: whether rank 0 asked for a save; the same on all ranks.
  bool is_save_asked_for() const { return words_.front().asks_for_save; }

 private:
  // On rank 0: not enough time for this step, what follows it, another step and a save.
  bool is_time_up(double now_s, double longest_save_s) const;

  Communicator& world_;
  const StopSignals& signals_;
  double limit_s_;
  double begin_s_ = 0.0;  // of the step
  double end_s_ = -1.0;   // of the step before; negative: none
  double longest_step_s_ = 0.0;
  double longest_pause_s_ = 0.0;  // between two steps: log, evaluation, save
  struct Word {
    StopReason reason;
    bool asks_for_save;
  };
  std::vector<Word> words_;  // by rank
  Request request_;
};

}  // namespace weft
