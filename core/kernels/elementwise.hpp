// Kernels in which each output element is a function of the same element of the inputs (and of its
// global index). Pointers are device memory, n elements; outputs may alias inputs element by
// element.
#pragma once

#include <cstdint>
#include <span>

#include "core/context.hpp"

namespace weft::kernels {

void copy(Context& context, const float* from, float* to, index_t n);
// out = a + b
void add(Context& context, const float* a, const float* b, float* out, index_t n);

// lefts[last] = lefts[last] + (... + (lefts[1] + (lefts[0] + leaf))): a leaf and the nodes it
// merges with, innermost first, in one pass over memory. The other lefts are used up.
void add_chain(Context& context, const float* leaf, std::span<float* const> lefts, index_t n);

// out = a * b
void multiply(Context& context, const float* a, const float* b, float* out, index_t n);

// y[t, j] = x[t, j] + bias[j]; x, y: [num_rows, n].
void add_bias(Context& context, const float* x, const float* bias, float* y, index_t num_rows,
              index_t n);
// y = gelu(x + bias), slope = gelu'(x + bias), in one pass over memory; shapes as add_bias. What
// backward needs is the slope, not x.
void add_bias_gelu(Context& context, const float* x, const float* bias, float* y, float* slope,
                   index_t num_rows, index_t n);

// Which dropout numbers a range of elements sees: those of its global indices (EXACT 3.21).
struct DropoutIndex {
  std::uint64_t seed = 0;
  index_t step = 0;
  index_t layer = 0;
  // Global index of element 0: (sample in the global batch * tokens + token) * features.
  index_t first_element = 0;
};

// y = x * (kept ? 1 / (1 - rate) : 0); an element is kept with probability 1 - rate. The same call
// with dy is the backward pass: nothing is stored.
void dropout(Context& context, const float* x, float* y, index_t n, float rate,
             const DropoutIndex& index);

// out[t, :] = in[t, first_col : first_col + num_cols]; in: [num_rows, row_length].
void take_columns(Context& context, const float* in, index_t row_length, index_t first_col,
                  float* out, index_t num_rows, index_t num_cols);

}  // namespace weft::kernels
