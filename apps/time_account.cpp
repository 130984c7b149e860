#include "apps/time_account.hpp"

#include <cassert>
#include <limits>
#include <numeric>

#include "apps/step_statistics.hpp"

namespace weft {

namespace {

constexpr std::size_t most_warm_up =
    StepStatistics::usual_warm_up(std::numeric_limits<std::size_t>::max());

}  // namespace

TimeAccount TimeAccount::at(const Trace& trace) {
  TimeAccount account{.wall_ns = trace.now_ns()};
  for (std::size_t i = 0; i < account.own_ns.size(); ++i) {
    account.own_ns[i] = trace.own_ns(static_cast<Activity>(i));
  }
  return account;
}

std::int64_t TimeAccount::other_ns() const {
  return wall_ns - std::accumulate(own_ns.begin(), own_ns.end(), std::int64_t{0});
}

TimeAccount& TimeAccount::operator+=(const TimeAccount& more) {
  wall_ns += more.wall_ns;
  for (std::size_t i = 0; i < own_ns.size(); ++i) own_ns[i] += more.own_ns[i];
  return *this;
}

TimeAccount& TimeAccount::operator-=(const TimeAccount& less) {
  wall_ns -= less.wall_ns;
  for (std::size_t i = 0; i < own_ns.size(); ++i) own_ns[i] -= less.own_ns[i];
  return *this;
}

void StepAccount::add(const TimeAccount& step) {
  if (first_.size() < most_warm_up) first_.push_back(step);
  all_ += step;
}

TimeAccount StepAccount::measured(std::size_t warm_up) const {
  assert(warm_up <= first_.size());
  TimeAccount rest = all_;
  for (std::size_t i = 0; i < warm_up; ++i) rest -= first_[i];
  return rest;
}

}  // namespace weft
