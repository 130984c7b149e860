#include "layers/linear_pieces.hpp"

namespace weft {

kernels::GemmCall forward_product(index_t t, index_t n, index_t k, const float* x, const float* w, float* y) {
  return {.transpose_b = true, .m = t, .n = n, .k = k, .a = x, .lda = k, .b = w, .ldb = k, .c = y, .ldc = n};
}

kernels::GemmCall input_product(index_t t, index_t n, index_t k, const float* dy, const float* w, float* dx) {
  return {.m = t, .n = k, .k = n, .a = dy, .lda = n, .b = w, .ldb = k, .c = dx, .ldc = k};
}

kernels::GemmCall weight_product(index_t t, index_t n, index_t k, const float* dy, const float* x, float* dw,
                                 bool accumulate) {
  return {.transpose_a = true,
          .m = n,
          .n = k,
          .k = t,
          .a = dy,
          .lda = n,
          .b = x,
          .ldb = k,
          .beta = accumulate ? 1.0f : 0.0f,
          .c = dw,
          .ldc = k};
}

}  // namespace weft
