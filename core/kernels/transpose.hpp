// A matrix on its side, for products that BLAS computes faster from another orientation.
#pragma once

#include "core/context.hpp"
#include "core/host_device.hpp"

namespace weft::kernels {

// Columns [0, cols) of eight rows that are `row_length` apart, to [cols, 8] with `column_length`
// between columns: a store of eight neighbours costs what one does. For use inside kernels.
WEFT_HOST_DEVICE inline void transpose_eight_rows(const float* from, index_t row_length,
                                                  index_t cols, float* to, index_t column_length) {
  for (index_t j = 0; j < cols; ++j) {
    float column[8];
    for (index_t i = 0; i < 8; ++i) column[i] = from[i * row_length + j];
    for (index_t i = 0; i < 8; ++i) to[j * column_length + i] = column[i];
  }
}

// to[j, i] = from[i, j]; from: `rows` rows of `cols`, `row_length` apart; to dense. For use inside
// kernels, on one thread.
WEFT_HOST_DEVICE inline void transpose_on_one_thread(const float* from, index_t row_length,
                                                     index_t rows, index_t cols, float* to) {
  index_t i = 0;
  for (; i + 8 <= rows; i += 8)
    transpose_eight_rows(from + i * row_length, row_length, cols, to + i, rows);
  for (; i < rows; ++i) {
    for (index_t j = 0; j < cols; ++j) to[j * rows + i] = from[i * row_length + j];
  }
}

// to[j, i] = from[i, j], both dense; from: [rows, cols]. Threads take rows.
void transpose(Context& context, const float* from, index_t rows, index_t cols, float* to);

}  // namespace weft::kernels
