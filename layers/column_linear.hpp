// Column-parallel linear: output features cut over tp. y_piece = x w_piece^T + b_piece, for each
// owned piece, on all rows; x has whole features, and with sequence parallel the rank's own rows.
// Optionally y = gelu(that), in the pass over memory that adds the bias; or there is no bias.
#pragma once

#include <string>
#include <vector>

#include "layers/layer.hpp"
#include "parallel/tensor/tensor_parallel.hpp"

namespace weft {

// What follows the product.
enum class Epilogue { bias, bias_gelu, none };

class ColumnLinear final : public Layer {
 public:
  // Output features are padded to `padded_out` (>= out_features); pads are 0 and stay 0. `tp` must
  // outlive the layer.
  ColumnLinear(std::string name, ParameterSet& parameters, TensorParallel& tp, index_t in_features,
               index_t out_features, index_t padded_out, Epilogue epilogue = Epilogue::bias);

  // Without bias, and with a weight that is another layer's, too: [out_features, in_features] cut
  // along out_features in tp's pieces. `weight` must outlive the layer.
  ColumnLinear(std::string name, Parameter& weight, TensorParallel& tp);

  // To the outside it is several linears, `names`, whose output features lie in it in turns of
  // `features` (core/logical_tensor.hpp). A piece is whole rounds.
  void set_turns(const std::vector<std::string>& names, index_t features);

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
  index_t in_features_;
  index_t padded_out_;
  Epilogue epilogue_;
  Parameter& weight_;  // [out, in], cut along out
  Parameter* bias_;    // [out], cut; null: Epilogue::none
};

}  // namespace weft
