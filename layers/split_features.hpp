// The input of a row-parallel first layer: the owned pieces of whole rows, cut by features. Nothing
// lies before it, so backward_input gives nothing.
#pragma once

#include "layers/layer.hpp"

namespace weft {

class SplitFeatures final : public Layer {
 public:
  // `tp` must outlive the layer.
  explicit SplitFeatures(TensorParallel& tp) : tp_(tp) {}

  Activation forward(Context& context, const Activation& x, Saved&, const Pass&) override {
    const Shape shape{x.num_rows(), x.num_features()};
    return {ShardSpec::cut(shape, 1, x.num_features(), tp_.num_pieces(), tp_.owned()),
            Rows::all(x.num_rows()),
            tp_.split_columns(context, x.data, x.num_rows(), x.num_features())};
  }
  Activation backward_input(Context&, const Activation&, Saved&, const Pass&) override {
    return {};
  }
  void backward_weight(Context&, Saved&, const Pass&, const GradientReady&) override {}

 private:
  TensorParallel& tp_;
};

}  // namespace weft
