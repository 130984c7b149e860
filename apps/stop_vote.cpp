// An all-gather of one byte a rank, started before a step and waited for after it.
#include "apps/stop_vote.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace weft {

std::string_view name_of(StopReason reason) {
  static constexpr std::array<std::string_view, 4> names = {"none", "SIGTERM", "SIGUSR1",
                                                            "time limit"};
  return names[static_cast<std::size_t>(reason)];
}

StopVote::StopVote(Communicator& world, const StopSignals& signals, double limit_s)
    : world_(world),
      signals_(signals),
      limit_s_(limit_s),
      reasons_(static_cast<std::size_t>(world.size())) {}

bool StopVote::is_time_up(double now_s, double longest_save_s) const {
  if (limit_s_ <= 0.0 || world_.rank() != 0) return false;
  return now_s + 2.0 * longest_step_s_ + longest_pause_s_ + longest_save_s > limit_s_;
}

void StopVote::start(double longest_save_s) {
  begin_s_ = signals_.elapsed_s();
  if (end_s_ >= 0.0) longest_pause_s_ = std::max(longest_pause_s_, begin_s_ - end_s_);
  StopReason& mine = reasons_[static_cast<std::size_t>(world_.rank())];
  const int signal_number = signals_.received();
  mine = signal_number == SIGTERM               ? StopReason::sigterm
         : signal_number == SIGUSR1             ? StopReason::sigusr1
         : is_time_up(begin_s_, longest_save_s) ? StopReason::time_limit
                                                : StopReason::none;
  std::vector<index_t> cuts(reasons_.size() + 1);
  std::iota(cuts.begin(), cuts.end(), index_t{0});
  request_ = world_.start({"stop.vote", AllGather{cuts, nullptr, reasons_.data()}});
}

StopReason StopVote::wait() {
  request_.wait();
  end_s_ = signals_.elapsed_s();
  longest_step_s_ = std::max(longest_step_s_, end_s_ - begin_s_);
  const auto first = std::find_if(reasons_.begin(), reasons_.end(),
                                  [](StopReason reason) { return reason != StopReason::none; });
  return first == reasons_.end() ? StopReason::none : *first;
}

}  // namespace weft
