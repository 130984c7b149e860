#include "apps/step_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace weft {

void StepStatistics::add(const StepStatistics& other) {
  step_ms_.insert(step_ms_.end(), other.step_ms_.begin(), other.step_ms_.end());
  samples_.insert(samples_.end(), other.samples_.begin(), other.samples_.end());
}

std::size_t StepStatistics::warm_up_steps() const {
  if (warm_up_steps_) return std::min(*warm_up_steps_, step_ms_.size());
  return usual_warm_up(step_ms_.size());
}

double StepStatistics::quantile(double q) const {
  std::vector<double> sorted(step_ms_.begin() + static_cast<std::ptrdiff_t>(warm_up_steps()),
                             step_ms_.end());
  if (sorted.empty()) return 0.0;
  std::sort(sorted.begin(), sorted.end());
  // The smallest value that at least q of all do not exceed.
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

double StepStatistics::samples_per_second() const {
  const auto skip = static_cast<std::ptrdiff_t>(warm_up_steps());
  const double ms = std::accumulate(step_ms_.begin() + skip, step_ms_.end(), 0.0);
  const double samples = std::accumulate(samples_.begin() + skip, samples_.end(), 0.0);
  return ms > 0.0 ? samples / ms * 1e3 : 0.0;
}

nlohmann::ordered_json json_of(const StepStatistics& times) {
  return {{"median", times.median_ms()},
          {"p95", times.p95_ms()},
          {"warm_up_steps", times.warm_up_steps()},
          {"measured_steps", times.measured_steps()}};
}

}  // namespace weft
