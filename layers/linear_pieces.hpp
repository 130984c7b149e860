// The matrix products of one linear layer, piece by piece: what column- and row-parallel linear
// have in common. Weights are w_nk [out, in], as in PyTorch, so y = x w^T + b.
#pragma once

#include <functional>
#include <vector>

#include "core/kernels/gemm.hpp"
#include "core/tensor.hpp"
#include "layers/layer.hpp"

namespace weft {

// Whether y = x w^T is computed from a transposed copy of w. For a narrow k BLIS takes a path that
// is slow where its second operand is transposed: by a quarter at k = 192, six times at k = 8. The
// copy pays where there are rows enough. A function of the shape, so alike on every layout.
bool transposes_weight(index_t t, index_t k);

// y_tn = x_tk w_nk^T; w is w_nk, or w_kn where transposes_weight().
kernels::GemmCall forward_product(index_t t, index_t n, index_t k, const float* x, const float* w,
                                  float* y);

// The owned pieces of a weight as forward_product wants them, for one forward pass of t rows.
class ForwardWeights {
 public:
  // `weight` must outlive it.
  ForwardWeights(Context& context, const Parameter& weight, index_t t);

  // y of `piece`. Local; may be called by several threads.
  kernels::GemmCall product(index_t piece, const float* x, float* y) const;

 private:
  const Parameter& weight_;
  index_t t_;
  Tensor transposed_;  // laid out as the weight's local storage; none where it is taken as it is
};

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
