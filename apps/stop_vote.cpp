// An all-gather of two bytes a rank, started before a step and waited for after it.
#include "apps/stop_vote.hpp"

#include <algorithm>
#include <array>

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
      words_(static_cast<std::size_t>(world.size())) {}

bool StopVote::is_time_up(double now_s, double longest_save_s) const {
  if (limit_s_ <= 0.0 || world_.rank() != 0) return false;
  return now_s + 2.0 * longest_step_s_ + longest_pause_s_ + longest_save_s > limit_s_;
}

void StopVote::start(double longest_save_s, bool asks_for_save) {
  begin_s_ = signals_.elapsed_s();
  if (end_s_ >= 0.0) longest_pause_s_ = std::max(longest_pause_s_, begin_s_ - end_s_);
  Word& mine = words_[static_cast<std::size_t>(world_.rank())];
  const int signal_number = signals_.received();
  mine.reason = signal_number == SIGTERM               ? StopReason::sigterm
                : signal_number == SIGUSR1             ? StopReason::sigusr1
                : is_time_up(begin_s_, longest_save_s) ? StopReason::time_limit
                                                       : StopReason::none;
  mine.asks_for_save = asks_for_save;
  std::vector<index_t> cuts;
  for (std::size_t rank = 0; rank <= words_.size(); ++rank)
    cuts.push_back(static_cast<index_t>(rank * sizeof(Word)));
  request_ = world_.start({"stop.vote", AllGather{cuts, nullptr, words_.data()}});
}

StopReason StopVote::wait() {
  request_.wait();
  end_s_ = signals_.elapsed_s();
  longest_step_s_ = std::max(longest_step_s_, end_s_ - begin_s_);
  const auto first = std::find_if(words_.begin(), words_.end(),
                                  [](const Word& word) { return word.reason != StopReason::none; });
  return first == words_.end() ? StopReason::none : first->reason;
}

}  // namespace weft
