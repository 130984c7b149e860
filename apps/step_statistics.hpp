// Step times of a run: median and 95th percentile, without the first steps, in which caches fill.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace weft {

class StepStatistics {
 public:
  StepStatistics() = default;
  // Leaves out `warm_up_steps` at the beginning instead of the usual number.
  explicit StepStatistics(std::size_t warm_up_steps) : warm_up_steps_(warm_up_steps) {}

  void add(double step_ms, double effective_samples) {
    step_ms_.push_back(step_ms);
    samples_.push_back(effective_samples);
  }
  // All steps of `other`, those of its warm-up too.
  void add(const StepStatistics& other);

  // The usual number of steps left out at the beginning: 20, or half of them where there are fewer
  // than 40, so that a short run has figures, too.
  static constexpr std::size_t usual_warm_up(std::size_t num_steps) {
    return num_steps < 40 ? num_steps / 2 : 20;
  }
  std::size_t warm_up_steps() const;
  std::size_t measured_steps() const { return step_ms_.size() - warm_up_steps(); }
  double median_ms() const { return quantile(0.5); }
  // 95 % of the steps take no longer.
  double p95_ms() const { return quantile(0.95); }
  // Effective samples (no padding) of the measured steps by their time.
  double samples_per_second() const;

 private:
  double quantile(double q) const;

  std::optional<std::size_t> warm_up_steps_;
  std::vector<double> step_ms_;
  std::vector<double> samples_;
};

// {"median", "p95", "warm_up_steps", "measured_steps"}: of a step, in milliseconds.
nlohmann::ordered_json json_of(const StepStatistics& times);

}  // namespace weft
