// The time of one process of a run, by what the run was doing. Every moment belongs to one part, so
// that the parts add up to the total.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weft {

enum class RunPart : std::uint8_t {
  start,  // until the first step
  training,
  evaluation,
  checkpoint,  // saving on the way and at the end
  finish       // after the last step: hashes, figures of all ranks
};
inline constexpr int num_run_parts = 5;

class RunClock {
 public:
  using Clock = std::chrono::steady_clock;

  // `now` is this moment, wherever it comes from (tests).
  explicit RunClock(Clock::time_point now = Clock::now()) : begin_(now), since_(now) {}

  // From here on; returns the part until here.
  RunPart enter(RunPart part, Clock::time_point now = Clock::now()) {
    spent_[static_cast<std::size_t>(part_)] += now - since_;
    since_ = now;
    const RunPart before = part_;
    part_ = part;
    return before;
  }

  // Up to the last enter().
  double seconds(RunPart part) const {
    return std::chrono::duration<double>(spent_[static_cast<std::size_t>(part)]).count();
  }
  double total_s() const { return std::chrono::duration<double>(since_ - begin_).count(); }

  // A part within another one.
  class Inside {
   public:
    Inside(RunClock& clock, RunPart part) : clock_(clock), outer_(clock.enter(part)) {}
    ~Inside() { clock_.enter(outer_); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    RunClock& clock_;
    RunPart outer_;
  };

 private:
  Clock::time_point begin_;
  Clock::time_point since_;
  RunPart part_ = RunPart::start;
  std::array<Clock::duration, num_run_parts> spent_{};
};

}  // namespace weft
