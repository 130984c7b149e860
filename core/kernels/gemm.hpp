// The one matmul entry: CBLAS on a host (plain loops where the product is with a vector), cuBLAS on
// a GPU. A call runs on one thread, so its bits are a function of its arguments' values, shape,
// strides and alignment; threads take different calls.
#pragma once

#include <span>

#include "core/context.hpp"

namespace weft::kernels {

// c = op_a(a) op_b(b) + beta c, all row-major; c: [m, n], op_a(a): [m, k], op_b(b): [k, n].
// Leading dims are row lengths in memory. beta is 0 (c is not read) or 1. With k = 0 the sum is
// empty: c = beta c.
struct GemmCall {
  bool transpose_a = false;
  bool transpose_b = false;
  index_t m = 0;
  index_t n = 0;
  index_t k = 0;
  const float* a = nullptr;
  index_t lda = 0;
  const float* b = nullptr;
  index_t ldb = 0;
  float beta = 0.0f;
  float* c = nullptr;
  index_t ldc = 0;
};

void gemm(Context& context, const GemmCall& call);

// Independent calls; a host's threads share them.
void gemm_batch(Context& context, std::span<const GemmCall> calls);

// "BLIS 0.9.0 (skx)" where the library says so, "cuBLAS 13.1.0"; part of the fingerprint.
std::string blas_text();

}  // namespace weft::kernels
