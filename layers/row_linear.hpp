// Row-parallel linear: input features cut over tp. y = sum over pieces of x_piece w_piece^T, then +
// b. x lies in pieces, all rows; y has whole features of all rows on every tp rank, or, with
// sequence parallel, of the rank's own.
#pragma once

#include <string>

#include "layers/layer.hpp"
#include "parallel/tensor/tensor_parallel.hpp"

namespace weft {

class RowLinear final : public Layer {
 public:
  // `wants_input_gradient` false: the first layer of a model, whose backward_input gives nothing.
  // `tp` must outlive the layer.
  RowLinear(std::string name, ParameterSet& parameters, TensorParallel& tp, index_t in_features,
            index_t out_features, bool wants_input_gradient);

  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  void backward_weight(Context& context, Saved& saved, const Pass& pass,
                       const GradientReady& ready) override;
  std::vector<kernels::GemmCall> products(index_t num_rows, index_t tokens) const override;

 private:
  std::string name_;
  TensorParallel& tp_;
  index_t out_features_;
  bool wants_input_gradient_;
  Parameter& weight_;  // [out, in], cut along in
  Parameter& bias_;    // [out], replicated
};

}  // namespace weft
