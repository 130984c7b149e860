#include "core/kernels/transpose.hpp"

namespace weft::kernels {

void transpose(Context& context, const float* from, index_t rows, index_t cols, float* to) {
  context.device.parallel_for(
      "weft/transpose", (rows + 7) / 8, KOKKOS_LAMBDA(index_t group) {
        const index_t first = 8 * group;
        if (first + 8 <= rows) {
          transpose_eight_rows(from + first * cols, cols, cols, to + first, rows);
          return;
        }
        for (index_t i = first; i < rows; ++i) {
          for (index_t j = 0; j < cols; ++j) to[j * rows + i] = from[i * cols + j];
        }
      });
}

}  // namespace weft::kernels
