// The only additions of floats that comm makes: two values of equal length, element by element.
// What may be added to what is the caller's business (the tree's law, EXACT section 2).
#pragma once

#include <cstddef>

#include "core/range.hpp"
#include "parallel/comm/collective.hpp"

namespace weft {

constexpr index_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 8; }

// sum[i] = left[i] + right[i], host memory. `sum` may be `left` or `right`; otherwise no overlap.
void add_values(Precision precision, index_t count, const void* left, const void* right, void* sum);

}  // namespace weft
