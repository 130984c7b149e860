// A learnt vector for each place in a sample: y[row] = x[row] + position[row mod tokens], on the
// rows this rank holds. A pass may have fewer tokens than there are places: the first ones.
#pragma once

#include <string>

#include "layers/layer.hpp"

namespace weft {

class PositionEmbedding final : public Layer {
 public:
  // Uniform in +-bound at the start: a standard deviation of 0.02.
  static constexpr float initial_bound = 0.0346410162f;

  // `tp` must outlive the layer.
  PositionEmbedding(const std::string& name, ParameterSet& parameters, TensorParallel& tp,
                    index_t tokens, index_t num_features);

  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  // Gives all rows, also where x were the rank's own: they are gathered for the positions, and the
  // patch embedding below needs them as well.
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  void backward_weight(Context& context, Saved& saved, const Pass& pass,
                       const GradientReady& ready) override;

 private:
  std::string name_;
  TensorParallel& tp_;
  index_t tokens_;
  index_t num_features_;
  Parameter& position_;  // [tokens, h], replicated; no weight decay
};

}  // namespace weft
