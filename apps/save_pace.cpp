#include "apps/save_pace.hpp"

#include <algorithm>

namespace weft {

namespace {

double seconds_of(SavePace::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void SavePace::begin_save(Clock::time_point now) {
  last_begin_ = now;
  current_ = {};
  is_one_known_ = true;
}

void SavePace::add_wait(Clock::duration wait) {
  waited_ += wait;
  current_ += wait;
  longest_ = std::max(longest_, current_);
}

bool SavePace::is_due(index_t num_steps, Clock::time_point now) const {
  const double since_s = seconds_of(now - last_begin_);
  const auto every_s = static_cast<double>(plan_.every.seconds);
  if (every_s > 0.0 && since_s >= every_s) return true;
  if (plan_.overhead <= 0.0) return false;
  if (const auto interval = interval_s()) return since_s >= *interval;
  return static_cast<double>(num_steps) * plan_.overhead >= 1.0;
}

double SavePace::measured_overhead(Clock::time_point now) const {
  const double all_s = seconds_of(end_.value_or(now) - begin_);
  return all_s > 0.0 ? seconds_of(waited_) / all_s : 0.0;
}

std::optional<double> SavePace::interval_s() const {
  if (plan_.overhead <= 0.0 || !is_one_known_) return std::nullopt;
  return seconds_of(longest_) / plan_.overhead;
}

}  // namespace weft
