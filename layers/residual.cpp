#include "layers/residual.hpp"

#include "core/kernels/elementwise.hpp"

namespace weft {

namespace {

Activation sum(Context& context, const Activation& a, const Activation& b) {
  Activation out = a.like(context);
  kernels::add(context, a.data.data(), b.data.data(), out.data.data(), a.data.num_elements());
  return out;
}

}  // namespace

Activation Residual::forward(Context& context, const Activation& x, Saved& saved,
                             const Pass& pass) {
  saved.inner.resize(chain_.size());
  Activation y = x;
  for (std::size_t i = 0; i < chain_.size(); ++i)
    y = chain_[i]->forward(context, y, saved.inner[i], pass);
  return sum(context, x, y);
}

Activation Residual::backward_input(Context& context, const Activation& dy, Saved& saved,
                                    const Pass& pass) {
  Activation dx = dy;
  for (std::size_t i = chain_.size(); i-- > 0;)
    dx = chain_[i]->backward_input(context, dx, saved.inner[i], pass);
  return sum(context, dy, dx);
}

void Residual::backward_weight(Context& context, Saved& saved, const Pass& pass,
                               const GradientReady& ready) {
  for (std::size_t i = chain_.size(); i-- > 0;)
    chain_[i]->backward_weight(context, saved.inner[i], pass, ready);
}

std::vector<kernels::GemmCall> Residual::products(index_t num_rows, index_t tokens) const {
  std::vector<kernels::GemmCall> all;
  for (const auto& layer : chain_) {
    for (const auto& call : layer->products(num_rows, tokens)) all.push_back(call);
  }
  return all;
}

}  // namespace weft
