// Places in a training run at which `weft drill` lets a rank be disturbed: it kills or stops
// itself, or its disk is full. The one order comes from the environment variable WEFT_DRILL, which
// is meant for the drill alone and is read once, by arm(); without it a place costs one load and a
// branch. It is no test seam for single system calls; tests/fault has one.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"

namespace weft::drill {

// kill, term, stop: the signal; full: the write fails with "no space left on device", once, or the
// reading back, which `weft drill` does not try.
enum class Deed { kill, term, stop, full };

// One rank, once: at the first time that it comes to `at` in `step` or later (steps from 1; a
// save belongs to the step before it); or, where `at` is "time", so many seconds after arm().
struct Order {
  Deed deed = Deed::kill;
  std::string at;
  index_t rank = 0;
  index_t step = 0;
  double seconds = 0.0;
  friend bool operator==(const Order&, const Order&) = default;
};

inline constexpr const char* order_variable = "WEFT_DRILL";
inline constexpr std::string_view at_time = "time";

struct PointInfo {
  std::string name;
  std::string meaning;  // for people
};
// Every place that reach() knows, and "time".
const std::vector<PointInfo>& points();

std::string_view name_of(Deed deed);  // "kill"

// "kill at=save.commit rank=1 step=12", and back. Throws Error(usage).
std::string to_text(const Order& order);
Order parse_order(std::string_view text);

// Once a process, by the rank's main thread. Nothing where the environment has no order for it.
// Throws Error(usage) where the variable cannot be read.
void arm(int world_rank);

namespace detail {
extern std::atomic<bool> is_armed;
void reached(std::string_view point);
void reached_step(index_t step);
void reached_stage(std::string_view stage, bool is_done);
}  // namespace detail

// The rank comes to a point; any thread. Throws Error(failed) where the order is a full disk.
inline void reach(std::string_view point) {
  if (detail::is_armed.load(std::memory_order_relaxed)) [[unlikely]]
    detail::reached(point);
}
// The rank begins a step, counted from 1: point "step".
inline void reach_step(index_t step) {
  if (detail::is_armed.load(std::memory_order_relaxed)) [[unlikely]]
    detail::reached_step(step);
}
// Before a stage of a save on this rank, "save.write" say, and after it: "save.write.done". Stages
// that have no point do nothing.
inline void reach_stage(std::string_view stage, bool is_done) {
  if (detail::is_armed.load(std::memory_order_relaxed)) [[unlikely]]
    detail::reached_stage(stage, is_done);
}

}  // namespace weft::drill
