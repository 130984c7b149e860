#include "layers/dropout.hpp"

#include "core/kernels/elementwise.hpp"

namespace weft {

Activation Dropout::apply(Context& context, const Activation& x, const Pass& pass) const {
  if (rate_ == 0.0f || !pass.training) return x;
  const Activation y = x.like(context);
  const kernels::DropoutIndex index{
      .seed = context.numerics.seed,
      .step = pass.step,
      .layer = layer_,
      .first_element =
          (pass.first_sample * tokens_per_sample_ + x.rows.mine.begin) * num_features_};
  kernels::dropout(context, x.data.data(), y.data.data(), x.data.num_elements(), rate_, index);
  return y;
}

Activation Dropout::forward(Context& context, const Activation& x, Saved&, const Pass& pass) {
  return apply(context, x, pass);
}

Activation Dropout::backward_input(Context& context, const Activation& dy, Saved&,
                                   const Pass& pass) {
  return apply(context, dy, pass);
}

}  // namespace weft
