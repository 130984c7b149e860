#include "layers/gelu.hpp"

#include "core/kernels/elementwise.hpp"

namespace weft {

Activation Gelu::forward(Context& context, const Activation& x, Saved& saved, const Pass&) {
  Activation y = x.like(context);
  kernels::gelu(context, x.data.data(), y.data.data(), x.data.num_elements());
  saved.kept = {x};
  return y;
}

Activation Gelu::backward_input(Context& context, const Activation& dy, Saved& saved, const Pass&) {
  Activation dx = dy.like(context);
  kernels::gelu_backward(context, saved.kept[0].data.data(), dy.data.data(), dx.data.data(),
                         dy.data.num_elements());
  saved.kept.clear();
  return dx;
}

Cost Gelu::cost(index_t num_rows) const {
  return {20.0 * static_cast<double>(num_rows * local_features_),
          num_rows * local_features_ * index_t{sizeof(float)}};
}

}  // namespace weft
