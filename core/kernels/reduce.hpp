// Sums, each in an order that is fixed by indices: along a row in 16 accumulators (EXACT 4.3), over
// rows in sequence, over blocks by the tree. None starts from 0 where it has a first term.
#pragma once

#include "core/context.hpp"

namespace weft::kernels {

// The sum of term(i), i in [0, n), in 16-accumulator form: element i into accumulator i mod 16,
// then halves are added, 8, 4, 2, 1. Real is float or double. For use inside kernels.
template <class Real, class Term>
WEFT_HOST_DEVICE inline Real sum_of(index_t n, const Term& term) {
  Real sums[16];
  const index_t head = n < 16 ? n : 16;
  for (index_t k = 0; k < head; ++k) sums[k] = term(k);
  for (index_t k = head; k < 16; ++k) sums[k] = Real{0};
  index_t i = 16;
  for (; i + 16 <= n; i += 16) {
    for (index_t k = 0; k < 16; ++k) sums[k] += term(i + k);
  }
  for (index_t k = 0; i + k < n; ++k) sums[k] += term(i + k);
  for (index_t half = 8; half >= 1; half /= 2) {
    for (index_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sums[0];
}

// Columns that one parallel index sums side by side: some vectors' worth.
inline constexpr index_t column_group = 64;

// sums[0..width) over rows `rows` of x, in sequence; rows are n apart. With `accumulate` the chain
// goes on from sums, else it begins with the first row; no rows: 0. For use inside kernels.
WEFT_HOST_DEVICE inline void sum_column_group(const float* x, index_t n, Range rows, index_t width,
                                              float* sums, bool accumulate) {
  index_t row = rows.begin;
  if (!accumulate) {
    for (index_t j = 0; j < width; ++j) sums[j] = rows.empty() ? 0.0f : x[row * n + j];
    if (!rows.empty()) ++row;
  }
  for (; row < rows.end; ++row) {
    for (index_t j = 0; j < width; ++j) sums[j] += x[row * n + j];
  }
}

// sums[j] (+)= x[0, j] + x[1, j] + ... in sequence; x: [num_rows, n]. With `accumulate` the chain
// goes on from sums[j], else it begins with row 0; no rows: 0.
void sum_rows(Context& context, const float* x, index_t num_rows, index_t n, float* sums,
              bool accumulate);

// The same for each of the rank's token blocks (context.numerics: the range rule over the
// microbatch's num_rows): row b of sums from the rows of that block. x: rows `rows` of the
// microbatch, those of the blocks; sums: rows of n that are `stride` elements apart.
void sum_token_blocks(Context& context, const float* x, Range rows, index_t num_rows, index_t n,
                      float* sums, index_t stride, bool accumulate);

// out[j] = the tree over rows 0..num_rows-1 of x[:, j]; x: [num_rows, n] is used up.
void tree_fold_rows(Context& context, float* x, index_t num_rows, index_t n, float* out);

}  // namespace weft::kernels
