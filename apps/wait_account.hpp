// Who waited for whom, from what all ranks' traces recorded: pure functions of spans and times.
//
// A rank that waits in a collective waits for two things: that the last of the group comes to it
// (straggler wait), and that the bytes move (communication). Each collective has the same number on
// all members, so that its arrivals, on one clock, tell the two apart.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/range.hpp"
#include "core/trace.hpp"

namespace weft {

// A part of the main thread's time in which one span was the innermost.
struct OwnTime {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  Activity activity = Activity::start_up;
  std::uint16_t group = Trace::no_group;  // index into the trace's names
  std::int64_t number = -1;               // of the group's collectives
  std::int64_t ns() const { return end_ns - begin_ns; }
};

// In the order of time, none overlaps another; what was in no span is in none. `spans`: those of a
// trace, which nest.
std::vector<OwnTime> own_times(std::vector<Trace::Event> spans);

// What a rank did up to some moment, to be compared with others': why it came when it came.
enum class Cause : std::uint8_t { data, compute, communication };
inline constexpr int num_causes = 3;
std::string_view name_of(Cause cause);

// A rank comes to a collective. Times on the run's common clock; plain bytes on the way to others.
struct Arrival {
  std::int64_t number = 0;
  std::int64_t at_ns = 0;
  std::array<std::int64_t, num_causes> spent_ns{};  // until then, from the first recorded span
};

// Of one rank and group, in the order of numbers. `ahead_ns`: of this rank's clock.
std::vector<Arrival> arrivals_of(const Trace& trace, const std::vector<OwnTime>& times,
                                 std::string_view group, std::int64_t ahead_ns);

// The last one to come to a collective.
struct LastArrival {
  std::int64_t number = 0;
  std::int64_t at_ns = 0;  // on the common clock
  int member = 0;          // of the group; the first of those that came at the same time
  Cause cause = Cause::compute;
};

// Of each collective that all members have recorded. Its cause: on what the last one spent more
// than the median of the others, and on what most so, since the last collective that was over when
// the others came to this one. Who is late since it waited on another axis passes a delay on; so
// `communication` is no first cause.
std::vector<LastArrival> last_arrivals(const std::vector<std::vector<Arrival>>& of_members);

}  // namespace weft
