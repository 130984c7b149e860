#include "core/learning_rate.hpp"

#include <cmath>
#include <numbers>

namespace weft {

double LearningRate::at(index_t step) const {
  if (!cosine) return peak;
  if (step < warmup_steps)
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup_steps);
  const double length = static_cast<double>(num_steps - warmup_steps);
  const double passed = length > 0 ? static_cast<double>(step - warmup_steps) / length : 1.0;
  const double wave = 0.5 * (1.0 + std::cos(std::numbers::pi * passed));
  return peak * (final_fraction + (1.0 - final_fraction) * wave);
}

}  // namespace weft
