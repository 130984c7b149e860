// What `weft profile` has found, of all ranks, and how it is told. Internal to profile_command.
// profile_records reads the JSON again: what changes there has a new profile_format.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/profile_account.hpp"
#include "apps/skipped_rows.hpp"
#include "core/arena.hpp"
#include "core/hash.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// A bucket of gradients, mean over the measured steps, in nanoseconds from a step's begin.
struct BucketTimes {
  std::string name;
  double ready_ns = 0;     // its last piece was complete
  double launched_ns = 0;  // those before it, too
  double completed_ns = 0;
  index_t num_steps = 0;
};

struct ProfiledRank {
  int tp = 0, dp = 0, pp = 0;
  ProfileAccount account;
  std::vector<BucketTimes> buckets;  // in order of launch
  double backward_end_ns = 0;        // mean; the end of a step's last backward pass
  Arena::Peak peak;
  std::array<Arena::Bytes, num_phases> peak_by_phase{};
  std::uint64_t dropped_events = 0;
};

// All of it as bytes on the way to rank 0, and back. Throws Error(failed) on what is none.
std::string to_bytes(const ProfiledRank& rank);
ProfiledRank from_bytes(std::string_view bytes);

struct Profile {
  const Plan& plan;
  std::string transport;
  index_t warm_up = 0;
  std::string delays;
  Hash128 state_hash, loss_hash;          // after the last step
  std::vector<SkippedRows> skipped_rows;  // of the data
  std::vector<ProfiledRank> ranks;
};

using RowTotals = std::array<std::int64_t, num_profile_rows>;
// Of all measured steps; all rows together are the wall time.
RowTotals totals_of(const ProfileAccount& account);
std::int64_t wall_ns(const ProfileAccount& account);
// From the end of backward to that of the last bucket: what no computation hides.
double tail_ns(const ProfiledRank& rank);

// The one that others waited for longest, on account of what it did itself.
struct Straggler {
  int rank = 0;
  Cause cause = Cause::compute;
  double ms_a_step = 0.0;  // of all that waited for it, together
};
// Nobody where less than 2 % of the ranks' time was waited for one, or where that one waited for
// others half as long itself.
std::optional<Straggler> straggler_of(const std::vector<ProfiledRank>& ranks);

// A group on which time went when all had come to it: its links or its bytes, no late rank.
struct SlowLinks {
  int group = 0;         // of profile_groups
  double percent = 0.0;  // of all ranks' time
};
// Those of 5 % or more.
std::vector<SlowLinks> slow_links_of(const std::vector<ProfiledRank>& ranks);

// Of the JSON; 1 is the first that says it.
inline constexpr int profile_format = 1;

nlohmann::ordered_json json_of(const Profile& profile);
void print(const Profile& profile, std::ostream& text);

}  // namespace weft
