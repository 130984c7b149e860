// Dropout on whole features. Which elements are dropped is a function of (seed, step, layer,
// sample, token, feature); backward makes the mask again and nothing is stored (EXACT 3.21).
#pragma once

#include "layers/layer.hpp"

namespace weft {

class Dropout final : public Layer {
 public:
  // `layer`: number of the dropout in the whole model. rate 0: passes everything on.
  // `most_tokens`: of a sample. The mask of a token does not depend on how many a pass has.
  Dropout(float rate, index_t layer, index_t most_tokens, index_t num_features)
      : rate_(rate),
        layer_(layer),
        most_tokens_(most_tokens),
        num_features_(num_features) {}

  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  void backward_weight(Context&, Saved&, const Pass&, const GradientReady&) override {}

 private:
  Activation apply(Context& context, const Activation& x, const Pass& pass) const;

  float rate_;
  index_t layer_;
  index_t most_tokens_;
  index_t num_features_;
};

}  // namespace weft
