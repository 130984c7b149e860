// The matrix products of one linear layer, piece by piece: what column- and row-parallel linear
// have in common. Weights are w_nk [out, in], as in PyTorch, so y = x w^T + b.
#pragma once

#include <vector>

#include "core/kernels/gemm.hpp"
#include "layers/layer.hpp"

namespace weft {

// y_tn = x_tk w_nk^T
kernels::GemmCall forward_product(index_t t, index_t n, index_t k, const float* x, const float* w,
                                  float* y);
// dx_tk = dy_tn w_nk
kernels::GemmCall input_product(index_t t, index_t n, index_t k, const float* dy, const float* w,
                                float* dx);
// dw_nk = dy_tn^T x_tk, or, where `accumulate`, added to what is there
kernels::GemmCall weight_product(index_t t, index_t n, index_t k, const float* dy, const float* x,
                                 float* dw, bool accumulate);

// Runs product(s) for each owned piece s of `weight`, one per thread at a time, and says of each
// that it is ready before the next ones push it out of cache.
void weight_products_by_piece(Context& context, const Parameter& weight, const GradientReady& ready,
                              const std::function<kernels::GemmCall(index_t piece)>& product);

}  // namespace weft
