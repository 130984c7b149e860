// GELU, element by element, on whole rows or on pieces alike.
#pragma once

#include "layers/layer.hpp"

namespace weft {

class Gelu final : public Layer {
 public:
  // `local_features`: features a row that this rank holds, for the cost alone.
  explicit Gelu(index_t local_features) : local_features_(local_features) {}

  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  void backward_weight(Context&, Saved&, const Pass&, const GradientReady&) override {}
  Cost cost(index_t num_rows) const override;

 private:
  index_t local_features_;
};

}  // namespace weft
