#include "parallel/pipeline/schedule_check.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>

namespace weft::pipeline {

namespace {

using Kind = ActionKind;

std::string named(int stage) { return "stage " + std::to_string(stage); }

// What one stage's list must obey, whatever the others do.
class StageRules {
 public:
  StageRules(const Schedule& schedule, int stage)
      : schedule_(schedule),
        stage_(stage),
        microbatches_(static_cast<std::size_t>(schedule.num_microbatches)) {}

  // The first fault; empty: none.
  std::string run() {
    const std::vector<Action>& actions = schedule_.stages[static_cast<std::size_t>(stage_)];
    for (const Action& action : actions) {
      std::string fault = place_fault(action);
      if (fault.empty()) fault = take(action);
      if (!fault.empty()) return named(stage_) + ": " + text_of(action) + " " + fault;
    }
    const std::string missing = first_missing();
    return missing.empty() ? "" : named(stage_) + ": " + missing + " is missing";
  }

  index_t peak_activations() const { return peak_; }

 private:
  struct Progress {  // of one microbatch
    bool has_input = false;
    bool has_gradient = false;
    bool activation_sent = false;
    bool gradient_sent = false;
  };

  bool is_first() const { return stage_ == 0; }
  bool is_last() const { return stage_ == schedule_.num_stages() - 1; }

  std::string place_fault(const Action& action) const {
    if (action.stage != stage_) return "belongs to " + named(action.stage);
    if (action.chunk != 0) return "is of a chunk that this pipeline does not have";
    if (action.microbatch < 0 || action.microbatch >= schedule_.num_microbatches)
      return "is none of the " + std::to_string(schedule_.num_microbatches) + " microbatches";
    if (is_compute(action.kind)) return "";
    const int neighbour = neighbour_of(action);
    if (neighbour < 0 || neighbour >= schedule_.num_stages())
      return "is a message beyond the pipeline's end";
    return "";
  }

  std::string take(const Action& action) {
    const index_t k = action.microbatch;
    Progress& progress = microbatches_[static_cast<std::size_t>(k)];
    switch (action.kind) {
      case Kind::forward:
        if (k != next_forward_) return out_of_order("F", next_forward_);
        if (!is_first() && !progress.has_input) return "comes before its input is received";
        ++next_forward_;
        peak_ = std::max(peak_, schedule_.training ? next_forward_ - next_backward_ : 1);
        return "";
      case Kind::backward:
        if (!schedule_.training) return "is a backward in an evaluation";
        if (k != next_backward_) return out_of_order("B", next_backward_);
        if (k >= next_forward_) return "comes before its forward";
        if (!is_last() && !progress.has_gradient) return "comes before its gradient is received";
        ++next_backward_;
        return "";
      case Kind::receive_activation:
        return once(progress.has_input);
      case Kind::receive_gradient:
        return once(progress.has_gradient);
      case Kind::send_activation:
        return k < next_forward_ ? once(progress.activation_sent) : "comes before its forward";
      case Kind::send_gradient:
        return k < next_backward_ ? once(progress.gradient_sent) : "comes before its backward";
    }
    return "is of no known kind";
  }

  static std::string once(bool& is_done) {
    return std::exchange(is_done, true) ? "comes twice" : "";
  }

  std::string out_of_order(const char* name, index_t due) const {
    if (due == schedule_.num_microbatches) return "comes when all of its kind are done";
    return std::string("comes where ") + name + std::to_string(due) +
           " is due: each once, in increasing order";
  }

  std::string first_missing() const {
    if (next_forward_ < schedule_.num_microbatches) return "F" + std::to_string(next_forward_);
    if (schedule_.training && next_backward_ < schedule_.num_microbatches)
      return "B" + std::to_string(next_backward_);
    for (std::size_t k = 0; k < microbatches_.size(); ++k) {
      if (!is_last() && !microbatches_[k].activation_sent) return "SA" + std::to_string(k);
      if (!is_first() && schedule_.training && !microbatches_[k].gradient_sent)
        return "SG" + std::to_string(k);
    }
    return "";
  }

  const Schedule& schedule_;
  int stage_;
  std::vector<Progress> microbatches_;
  index_t next_forward_ = 0;
  index_t next_backward_ = 0;
  index_t peak_ = 0;
};

// All stages at once. Computations always can go on; a receive needs the next message of its
// channel; with sends as rendezvous a list ends when all it has sent is received.
class Simulation {
 public:
  Simulation(const Schedule& schedule, bool rendezvous)
      : schedule_(schedule), rendezvous_(rendezvous), next_(schedule.stages.size()) {}

  void run(std::vector<std::string>& faults) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (int stage = 0; stage < schedule_.num_stages(); ++stage) {
        while (step(stage)) moved = true;
        if (!mismatch_.empty()) return faults.push_back(mismatch_);
      }
    }
    for (int stage = 0; stage < schedule_.num_stages(); ++stage) {
      if (const Action* action = waiting_at(stage)) {
        faults.push_back(std::string("deadlock with ") + (rendezvous_ ? "rendezvous" : "buffered") +
                         " sends: " + named(stage) + " waits at " + text_of(*action) + " for " +
                         named(neighbour_of(*action)) + ", which " +
                         state_of(neighbour_of(*action)));
      }
    }
    for (const auto& [ends, messages] : channels_) {
      if (messages.empty()) continue;
      faults.push_back(rendezvous_
                           ? named(ends.first) + " waits at its end for " + named(ends.second) +
                                 " to receive " + text_of(messages.front())
                           : text_of(messages.front()) + " of " + named(ends.first) +
                                 " is never received by " + named(ends.second));
    }
  }

 private:
  const std::vector<Action>& list(int stage) const {
    return schedule_.stages[static_cast<std::size_t>(stage)];
  }
  const Action* waiting_at(int stage) const {
    const std::size_t next = next_[static_cast<std::size_t>(stage)];
    return next < list(stage).size() ? &list(stage)[next] : nullptr;
  }
  std::string state_of(int stage) const {
    const Action* action = waiting_at(stage);
    return action ? "waits at " + text_of(*action) : "has come to its end";
  }

  bool step(int stage) {
    const Action* action = waiting_at(stage);
    if (!action) return false;
    if (is_send(action->kind)) channels_[{stage, neighbour_of(*action)}].push_back(*action);
    if (is_receive(action->kind) && !receive(*action)) return false;
    ++next_[static_cast<std::size_t>(stage)];
    return true;
  }

  // Messages of a channel meet in order of start, whatever is in them.
  bool receive(const Action& action) {
    auto& channel = channels_[{neighbour_of(action), action.stage}];
    if (channel.empty()) return false;
    const Action sent = channel.front();
    const Kind expected =
        action.kind == Kind::receive_activation ? Kind::send_activation : Kind::send_gradient;
    if (sent.kind != expected || sent.microbatch != action.microbatch) {
      mismatch_ = named(action.stage) + " receives " + text_of(action) + ", but " +
                  named(sent.stage) + " sends " + text_of(sent);
      return false;
    }
    channel.pop_front();
    return true;
  }

  const Schedule& schedule_;
  bool rendezvous_;
  std::vector<std::size_t> next_;                               // by stage: its next action
  std::map<std::pair<int, int>, std::deque<Action>> channels_;  // (from, to): sent, not received
  std::string mismatch_;
};

bool stays_inside(const Schedule& schedule) {
  for (int stage = 0; stage < schedule.num_stages(); ++stage) {
    for (const Action& action : schedule.stages[static_cast<std::size_t>(stage)]) {
      const int neighbour = is_compute(action.kind) ? stage : neighbour_of(action);
      if (action.stage != stage || neighbour < 0 || neighbour >= schedule.num_stages())
        return false;
    }
  }
  return true;
}

}  // namespace

ScheduleCheck check(const Schedule& lowered) {
  ScheduleCheck result;
  if (lowered.stages.empty()) result.faults.push_back("a schedule without stages");
  if (lowered.num_microbatches < 1) result.faults.push_back("a schedule without microbatches");
  if (!result.faults.empty()) return result;
  for (int stage = 0; stage < lowered.num_stages(); ++stage) {
    StageRules rules(lowered, stage);
    std::string fault = rules.run();
    if (!fault.empty()) result.faults.push_back(std::move(fault));
    result.peak_activations.push_back(rules.peak_activations());
  }
  if (!stays_inside(lowered)) return result;  // no simulation of messages to nowhere
  for (const bool rendezvous : {false, true}) Simulation(lowered, rendezvous).run(result.faults);
  return result;
}

}  // namespace weft::pipeline
