#include "layers/row_linear.hpp"

#include <cmath>
#include <utility>

#include "core/kernels/elementwise.hpp"
#include "core/kernels/reduce.hpp"
#include "layers/linear_pieces.hpp"

namespace weft {

RowLinear::RowLinear(std::string name, ParameterSet& parameters, TensorParallel& tp,
                     index_t in_features, index_t out_features, bool wants_input_gradient)
    : name_(std::move(name)),
      tp_(tp),
      out_features_(out_features),
      wants_input_gradient_(wants_input_gradient),
      weight_(parameters.add(
          name_ + ".weight",
          ShardSpec::cut({out_features, in_features}, 1, in_features, tp.num_pieces(), tp.owned()),
          {.uniform_bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(in_features)))},
          GradientRows::all)),
      bias_(parameters.add(name_ + ".bias", ShardSpec::replicated({out_features}), {},
                           GradientRows::token_blocks)) {}

Activation RowLinear::forward(Context& context, const Activation& x, Saved& saved, const Pass&) {
  const index_t t = x.num_rows();
  const Rows rows = tp_.owned_rows(t);
  const ForwardWeights weights(context, weight_, t);
  Tensor y = tp_.reduce(
      context, name_ + ".forward.reduce", rows, out_features_,
      [&](index_t s, float* out) { kernels::gemm(context, weights.product(s, x.piece(s), out)); });
  // The bias comes after the tree: inside a leaf it would be added once per piece (EXACT 3.1).
  kernels::add_bias(context, y.data(), bias_.value, y.data(), rows.mine.size(), out_features_);
  saved.kept = {x};
  return {ShardSpec::replicated({t, out_features_}), rows, std::move(y)};
}

Activation RowLinear::backward_input(Context& context, const Activation& dy, Saved& saved,
                                     const Pass&) {
  const index_t t = dy.num_rows();
  const Activation dy_tn{
      dy.spec, Rows::all(t),
      tp_.gather_rows(context, name_ + ".backward_input.gather", dy.data, dy.rows, out_features_)};
  saved.kept.push_back(dy_tn);
  saved.kept.push_back(dy);
  if (!wants_input_gradient_) return {};
  Activation dx = saved.kept[0].like(context);
  std::vector<kernels::GemmCall> calls;
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    calls.push_back(input_product(t, out_features_, dx.spec.piece(s).size(), dy_tn.data.data(),
                                  weight_.value_of(s), dx.piece(s)));
  }
  kernels::gemm_batch(context, calls);
  return dx;
}

void RowLinear::backward_weight(Context& context, Saved& saved, const Pass& pass,
                                const GradientReady& ready) {
  const Activation& x = saved.kept[0];
  const Activation& dy_tn = saved.kept[1];
  const Activation& dy_rn = saved.kept[2];
  const index_t t = x.num_rows();
  const bool accumulate = !pass.first_of_lane;
  weight_products_by_piece(context, weight_, ready, [&](index_t s) {
    return weight_product(t, out_features_, x.spec.piece(s).size(), dy_tn.data.data(), x.piece(s),
                          weight_.gradient_of(s), accumulate);
  });
  kernels::sum_token_blocks(context, dy_rn.data.data(), dy_rn.rows.mine, t, out_features_,
                            bias_.partials, bias_.partial_stride, accumulate);
}

std::vector<kernels::GemmCall> RowLinear::products(index_t num_rows, index_t) const {
  std::vector<kernels::GemmCall> all;
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    const index_t n = out_features_;
    const index_t k = weight_.spec.piece(s).size();
    all.push_back(forward_product(num_rows, n, k, nullptr, nullptr, nullptr));
    if (wants_input_gradient_)
      all.push_back(input_product(num_rows, n, k, nullptr, nullptr, nullptr));
    for (const bool accumulate : {false, true})
      all.push_back(weight_product(num_rows, n, k, nullptr, nullptr, nullptr, accumulate));
  }
  return all;
}

}  // namespace weft
