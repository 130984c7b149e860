// A profile as `weft profile --json` wrote it, for those who read: `weft report`.
#pragma once

#include <string>
#include <vector>

#include "apps/named_numbers.hpp"
#include "core/range.hpp"

namespace weft {

struct ProfileWait {
  index_t for_rank = 0;
  std::string over;   // tp, dp, pp, world
  std::string cause;  // what that rank was at: data, compute, communication
  double ms_a_step = 0.0;
};

struct ProfileBucket {
  std::string name;
  double ready_ms = 0.0, launched_ms = 0.0, completed_ms = 0.0;  // from a step's begin
};

struct ProfileRank {
  index_t tp = 0, dp = 0, pp = 0;
  double median_ms = 0.0, p95_ms = 0.0;
  NamedNumbers rows_ms;    // mean of a step; they add up to its wall time
  NamedNumbers hidden_ms;  // mean of a step, by group: beside the rows
  std::vector<ProfileWait> waits;
  double backward_end_ms = 0.0, tail_ms = 0.0;
  std::vector<ProfileBucket> buckets;
  double peak_bytes = 0.0;
  std::string peak_phase;
  NamedNumbers peak_by_kind, foreseen;  // bytes
  double dropped_events = 0.0;
};

struct ProfileRecord {
  std::string path;
  std::string plan, layout, transport;
  index_t warm_up_steps = 0, measured_steps = 0;
  std::string injected;               // delays on purpose; empty: none
  std::string leak;                   // what every report says of one; empty: none
  std::vector<std::string> findings;  // stragglers and slow links, as sentences
  std::vector<ProfileRank> ranks;
};

// Throws Error(usage) where the file is missing, cut off, of another command or of another version.
ProfileRecord read_profile(const std::string& path);
ProfileRecord parse_profile(const std::string& path, const std::string& text);

}  // namespace weft
