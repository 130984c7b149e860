#include "layers/dropout.hpp"

#include <algorithm>

#include "core/kernels/elementwise.hpp"

namespace weft {

Activation Dropout::apply(Context& context, const Activation& x, const Pass& pass) const {
  if (rate_ == 0.0f || !pass.training) return x;
  const Activation y = x.like(context);
  const index_t tokens = x.num_rows() / pass.num_samples;
  // Rows of which all neighbours in memory are neighbours by index, too: where samples have all
  // their tokens, all rows, else those of a sample.
  const index_t run = tokens == most_tokens_ ? x.num_rows() : tokens;
  const Range mine = x.rows.mine;
  for (index_t row = mine.begin; row < mine.end;) {
    const index_t end = std::min((row / run + 1) * run, mine.end);
    const index_t sample = pass.first_sample + row / tokens;
    const kernels::DropoutIndex index{
        .seed = context.numerics.seed,
        .step = pass.step,
        .layer = layer_,
        .first_element = (sample * most_tokens_ + row % tokens) * num_features_};
    const index_t at = (row - mine.begin) * num_features_;
    kernels::dropout(context, x.data.data() + at, y.data.data() + at, (end - row) * num_features_,
                     rate_, index);
    row = end;
  }
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
