// The mean over a sample's tokens: [samples x tokens, h] -> [samples, h], on every tp rank alike.
// Masked, over those that pass.lengths says are not padding.
#pragma once

#include <string>

#include "layers/layer.hpp"

namespace weft {

class MeanPool final : public Layer {
 public:
  // `tp` must outlive the layer.
  MeanPool(std::string name, TensorParallel& tp, index_t num_features, bool masked = false)
      : name_(std::move(name)), tp_(tp), num_features_(num_features), masked_(masked) {}

  // y: all samples on each rank, also with sequence parallel: there are few.
  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  void backward_weight(Context&, Saved&, const Pass&, const GradientReady&) override {}
  index_t rows_after(index_t num_rows, index_t tokens) const override { return num_rows / tokens; }

 private:
  std::string name_;
  TensorParallel& tp_;
  index_t num_features_;
  bool masked_;
};

}  // namespace weft
