// The input of a row-parallel patch embedding: images cut in patches, a row for each, and of their
// pixels the owned pieces. Nothing lies before it, so backward_input gives nothing.
#pragma once

#include "core/kernels/tokens.hpp"
#include "layers/layer.hpp"

namespace weft {

class Patches final : public Layer {
 public:
  // `tp` must outlive the layer.
  Patches(TensorParallel& tp, const kernels::PatchShape& shape) : tp_(tp), shape_(shape) {}

  // x: [samples, pixels] whole, as planes. y: [samples x tokens, patch features] in pieces.
  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  Activation backward_input(Context&, const Activation&, Saved&, const Pass&) override {
    return {};
  }
  void backward_weight(Context&, Saved&, const Pass&, const GradientReady&) override {}
  index_t rows_after(index_t num_rows, index_t) const override {
    return num_rows * shape_.tokens();
  }

 private:
  TensorParallel& tp_;
  kernels::PatchShape shape_;
};

}  // namespace weft
