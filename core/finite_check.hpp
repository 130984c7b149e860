// Whether numbers are finite: neither infinite nor NaN.
#pragma once

#include "core/range.hpp"

namespace weft {

// Local. Of n numbers in device memory. Copies them to the host where that is another memory: for
// finding a fault, not for every step.
bool all_finite(const float* device, index_t n);

}  // namespace weft
