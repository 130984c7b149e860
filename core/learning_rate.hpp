// Learning-rate schedules: a number that is a function of the integer step, in f64.
#pragma once

#include <string>

#include "core/range.hpp"

namespace weft {

struct LearningRate {
  double peak = 0.0;
  bool cosine = false;          // else constant
  index_t warmup_steps = 0;     // linear from peak / warmup_steps; cosine only
  index_t num_steps = 0;        // where the cosine ends
  double final_fraction = 0.0;  // of the peak, at the end

  // step: 0-based. Warm-up: peak (step+1) / W. Then peak (f + (1-f) (1 + cos(pi (step-W) / (N-W)))
  // / 2) (Loshchilov and Hutter 2017, without restarts).
  double at(index_t step) const;
};

}  // namespace weft
