// Where a rank's time went, in nanoseconds, such that the parts add up to the wall time: what
// steps, layouts and summaries report.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/trace.hpp"

namespace weft {

inline double ms_of(std::int64_t ns) { return static_cast<double>(ns) * 1e-6; }

struct TimeAccount {
  std::int64_t wall_ns = 0;
  std::array<std::int64_t, num_activities> own_ns{};

  // Since the trace began. A difference of two is the account of what lies between, if no span is
  // open across either end.
  static TimeAccount at(const Trace& trace);

  std::int64_t of(Activity activity) const { return own_ns[static_cast<std::size_t>(activity)]; }
  // In no span: loops between them, bookkeeping.
  std::int64_t other_ns() const;

  TimeAccount& operator+=(const TimeAccount& more);
  TimeAccount& operator-=(const TimeAccount& less);
  friend TimeAccount operator-(TimeAccount a, const TimeAccount& b) { return a -= b; }
};

// Of all steps together, without those that will turn out to be warm-up: how many that are depends
// on how many steps there will be (StepStatistics).
class StepAccount {
 public:
  void add(const TimeAccount& step);
  // Without the first `warm_up` steps, at most StepStatistics' usual number.
  TimeAccount measured(std::size_t warm_up) const;

 private:
  std::vector<TimeAccount> first_;
  TimeAccount all_;
};

}  // namespace weft
