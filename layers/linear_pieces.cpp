#include "layers/linear_pieces.hpp"

#include <algorithm>

namespace weft {

kernels::GemmCall forward_product(index_t t, index_t n, index_t k, const float* x, const float* w,
                                  float* y) {
  return {.transpose_b = true,
          .m = t,
          .n = n,
          .k = k,
          .a = x,
          .lda = k,
          .b = w,
          .ldb = k,
          .c = y,
          .ldc = n};
}

kernels::GemmCall input_product(index_t t, index_t n, index_t k, const float* dy, const float* w,
                                float* dx) {
  return {.m = t, .n = k, .k = n, .a = dy, .lda = n, .b = w, .ldb = k, .c = dx, .ldc = k};
}

kernels::GemmCall weight_product(index_t t, index_t n, index_t k, const float* dy, const float* x,
                                 float* dw, bool accumulate) {
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

void weight_products_by_piece(Context& context, const Parameter& weight, const GradientReady& ready,
                              const std::function<kernels::GemmCall(index_t piece)>& product) {
  const Range owned = weight.spec.owned();
  const index_t wave = context.device.num_threads();
  std::vector<kernels::GemmCall> calls;
  for (index_t first = owned.begin; first < owned.end; first += wave) {
    const index_t end = std::min(first + wave, owned.end);
    calls.clear();
    for (index_t s = first; s < end; ++s) calls.push_back(product(s));
    kernels::gemm_batch(context, calls);
    for (index_t s = first; s < end; ++s) ready(weight, s);
  }
}

}  // namespace weft
