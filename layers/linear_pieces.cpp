#include "layers/linear_pieces.hpp"

#include <algorithm>

#include "core/kernels/transpose.hpp"

namespace weft {

bool transposes_weight(index_t t, index_t k) { return k <= 256 && 2 * t >= k; }

kernels::GemmCall forward_product(index_t t, index_t n, index_t k, const float* x, const float* w,
                                  float* y) {
  const bool is_transposed = transposes_weight(t, k);
  return {.transpose_b = !is_transposed,
          .m = t,
          .n = n,
          .k = k,
          .a = x,
          .lda = k,
          .b = w,
          .ldb = is_transposed ? n : k,
          .c = y,
          .ldc = n};
}

ForwardWeights::ForwardWeights(Context& context, const Parameter& weight, index_t t)
    : weight_(weight), t_(t) {
  const ShardSpec& spec = weight.spec;
  for (index_t s = spec.owned().begin; s < spec.owned().end; ++s) {
    const Box block = spec.block(s);
    if (!transposes_weight(t, block.cols.size())) continue;
    if (!transposed_) {
      transposed_ = Tensor(context.arena, MemoryKind::workspace, {spec.local_elements()});
    }
    kernels::transpose(context, weight.value_of(s), block.rows.size(), block.cols.size(),
                       transposed_.data() + spec.offset(s));
  }
}

kernels::GemmCall ForwardWeights::product(index_t piece, const float* x, float* y) const {
  const Box block = weight_.spec.block(piece);
  const index_t n = block.rows.size(), k = block.cols.size();
  const float* w = transposes_weight(t_, k) ? transposed_.data() + weight_.spec.offset(piece)
                                            : weight_.value_of(piece);
  return forward_product(t_, n, k, x, w, y);
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
