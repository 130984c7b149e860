// y = x + f(x), f a chain of layers.
#pragma once

#include <memory>
#include <vector>

#include "layers/layer.hpp"

namespace weft {

class Residual final : public Layer {
 public:
  explicit Residual(std::vector<std::unique_ptr<Layer>> chain) : chain_(std::move(chain)) {}

  Activation forward(Context& context, const Activation& x, Saved& saved,
                     const Pass& pass) override;
  Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                            const Pass& pass) override;
  void backward_weight(Context& context, Saved& saved, const Pass& pass,
                       const GradientReady& ready) override;
  std::vector<kernels::GemmCall> products(index_t num_rows, index_t tokens) const override;

 private:
  std::vector<std::unique_ptr<Layer>> chain_;
};

}  // namespace weft
