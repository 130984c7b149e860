// What evens out a rare class in training. It is said of the training part as a whole, so that it is
// the same on every layout; evaluation uses none of it.
#pragma once

#include <vector>

#include "core/range.hpp"

namespace weft {

struct ClassBalance {
  std::vector<float> weights;  // of a sample's loss, by class; empty: 1 for all
  // Where rare_share > 0, that share of an epoch's samples is drawn from `rare`, increasing indices
  // of training samples, the rest from the others.
  std::vector<index_t> rare;
  double rare_share = 0.0;
};

}  // namespace weft
