// Multi-head self-attention between its two linears: heads are cut over tp, and each rank computes
// its own heads of all rows, so nothing crosses the axis here. softmax(q k^T / sqrt(d)) v over the
// keys that a token sees; no dropout of probabilities.
#pragma once

#include "core/kernels/attention.hpp"
#include "layers/layer.hpp"

namespace weft {

// Which tokens of its sample a token sees: all; itself and earlier ones; those that pass.lengths
// says are not padding (and where it is padding itself, none: it gets 0).
enum class Sees { all, earlier, real };

class Attention final : public Layer {
 public:
  // `heads` is a multiple of tp's pieces: a piece is whole heads. `tp` must outlive the layer.
  Attention(TensorParallel& tp, index_t heads, index_t head_dim, Sees sees = Sees::all);

  // x: [t, 3 heads x head_dim] in pieces, head by head q, k and v (core/kernels/attention.hpp).
  // y: [t, heads x head_dim] in pieces.
  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  void backward_weight(Context&, Saved&, const Pass&, const GradientReady&) override {}
  std::vector<kernels::GemmCall> products(index_t num_rows, index_t tokens) const override;

 private:
  // What a piece computes of `num_samples`. `lengths`: theirs, used where Sees::real.
  kernels::AttentionShape piece_shape(index_t num_samples, index_t tokens,
                                      const std::int32_t* lengths) const;

  TensorParallel& tp_;
  index_t heads_;
  index_t head_dim_;
  Sees sees_;
};

}  // namespace weft
