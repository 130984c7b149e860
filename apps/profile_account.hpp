// Where each of a rank's measured steps went, as `weft profile` says it: rows that add up to the
// step's wall time to the nanosecond, what went on behind them, and whom this rank waited for.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/wait_account.hpp"

namespace weft {

// communication_*: exposed, after the last of the group had come. What is in no span, or in one
// that is no part of a step, is `unexplained`.
enum class ProfileRow : std::uint8_t {
  data_wait,
  forward,
  backward,
  communication_tp,
  communication_dp,
  communication_pp,
  communication_run,  // of all ranks
  bubble,
  straggler_wait,
  update,
  unexplained
};
inline constexpr int num_profile_rows = 11;
std::string_view name_of(ProfileRow row);

// The groups whose collectives are told apart, in the order of the rows.
inline constexpr std::array<std::string_view, 4> profile_groups = {"tp", "dp", "pp", "world"};

struct ProfiledStep {
  std::int64_t wall_ns = 0;
  std::array<std::int64_t, num_profile_rows> ns{};
  // Under way in the group while this rank did something else; in the rows already.
  std::array<std::int64_t, profile_groups.size()> hidden_ns{};
};

// For whom this rank waited, and what that one was at.
struct WaitedFor {
  int rank = 0;   // world rank
  int group = 0;  // of profile_groups
  Cause cause = Cause::compute;
  friend auto operator<=>(const WaitedFor&, const WaitedFor&) = default;
};

// The last arrivals of one of this rank's groups, on this rank's own clock.
struct GroupArrivals {
  int group = 0;             // of profile_groups
  std::vector<int> members;  // world ranks
  std::vector<LastArrival> last;
};

struct ProfileAccount {
  std::vector<ProfiledStep> steps;
  std::map<WaitedFor, std::int64_t> waited_ns;  // of all steps; adds up to their straggler_wait
};

// `steps`: the measured steps, [begin, end) in nanoseconds of the trace, in order.
ProfileAccount account_of(const Trace& trace, const std::vector<OwnTime>& times,
                          const std::vector<Range>& steps,
                          const std::vector<GroupArrivals>& groups);

}  // namespace weft
