// Layer norm over the features of a row (Ba, Kiros, Hinton 2016, section 3.1): biased variance,
// y = (x - mean) / sqrt(variance + eps) * gain + bias. x, y: whole features of the rank's rows.
#pragma once

#include <string>

#include "layers/layer.hpp"

namespace weft {

class LayerNorm final : public Layer {
 public:
  static constexpr float eps = 1e-5f;

  LayerNorm(const std::string& name, ParameterSet& parameters, index_t num_features);

  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  void backward_weight(Context& context, Saved& saved, const Pass& pass,
                       const GradientReady& ready) override;

 private:
  index_t num_features_;
  Parameter& gain_;
  Parameter& bias_;
};

}  // namespace weft
