#include "layers/attention.hpp"

#include <cassert>

namespace weft {

Attention::Attention(TensorParallel& tp, index_t heads, index_t head_dim, Sees sees)
    : tp_(tp), heads_(heads), head_dim_(head_dim), sees_(sees) {
  assert(heads % tp.num_pieces() == 0);
}

kernels::AttentionShape Attention::piece_shape(index_t num_samples, index_t tokens,
                                               const std::int32_t* lengths) const {
  const kernels::AttentionMask mask{.causal = sees_ == Sees::earlier,
                                    .lengths = sees_ == Sees::real ? lengths : nullptr};
  return {num_samples, tokens, heads_ / tp_.num_pieces(), head_dim_, mask};
}

Activation Attention::forward(Context& context, const Activation& x, Saved& saved,
                              const Pass& pass) {
  assert(pass.lengths || sees_ != Sees::real);
  const index_t t = x.num_rows();
  const auto shape = piece_shape(pass.num_samples, t / pass.num_samples, pass.lengths);
  Activation y = Activation::cut(context, tp_, t, heads_ * head_dim_);
  // Two numbers for each row of scores, as the kernel lays them out.
  Activation row_softmax = Activation::cut(context, tp_, t, 2 * heads_);
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    kernels::attention(context, shape, x.piece(s), y.piece(s), row_softmax.piece(s));
  }
  saved.kept = {x, y, row_softmax};
  return y;
}

Activation Attention::backward_input(Context& context, const Activation& dy, Saved& saved,
                                     const Pass& pass) {
  const Activation& x = saved.kept[0];
  const Activation& y = saved.kept[1];
  const Activation& row_softmax = saved.kept[2];
  const auto shape = piece_shape(pass.num_samples, x.num_rows() / pass.num_samples, pass.lengths);
  Activation dx = x.like(context);
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    kernels::attention_backward(context, shape, x.piece(s), y.piece(s), row_softmax.piece(s),
                                dy.piece(s), dx.piece(s));
  }
  saved.kept.clear();
  return dx;
}

std::vector<kernels::GemmCall> Attention::products(index_t num_rows, index_t tokens) const {
  // Where samples have lengths, products take copies of other strides; no product depends on which.
  const std::int32_t any_length = 0;
  return kernels::attention_products(piece_shape(num_rows / tokens, tokens, &any_length));
}

}  // namespace weft
