#include "layers/mean_pool.hpp"

#include <cassert>

#include "core/kernels/tokens.hpp"

namespace weft {

Activation MeanPool::forward(Context& context, const Activation& x, Saved& saved,
                             const Pass& pass) {
  assert(pass.lengths || !masked_);
  const index_t num_samples = pass.num_samples;
  const Tensor x_th =
      tp_.gather_rows(context, name_ + ".forward.gather", x.data, x.rows, num_features_);
  Activation y = Activation::whole(context, Rows::all(num_samples), num_features_);
  kernels::mean_tokens(context, x_th.data(), num_samples, x.num_rows() / num_samples, num_features_,
                       masked_ ? pass.lengths : nullptr, y.data.data());
  saved.kept = {{x.spec, x.rows, {}}};  // backward needs to know the rows alone
  return y;
}

Activation MeanPool::backward_input(Context& context, const Activation& dy, Saved& saved,
                                    const Pass& pass) {
  Activation dx = Activation::whole(context, saved.kept[0].rows, num_features_);
  const index_t tokens = dx.num_rows() / pass.num_samples;
  kernels::mean_tokens_backward(context, dy.data.data(), dx.rows.mine, tokens, num_features_,
                                masked_ ? pass.lengths : nullptr, dx.data.data());
  saved.kept.clear();
  return dx;
}

}  // namespace weft
