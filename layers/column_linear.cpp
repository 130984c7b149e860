#include "layers/column_linear.hpp"

#include <cmath>
#include <utility>

#include "core/kernels/elementwise.hpp"
#include "core/kernels/reduce.hpp"
#include "layers/linear_pieces.hpp"

namespace weft {

ColumnLinear::ColumnLinear(std::string name, ParameterSet& parameters, TensorParallel& tp,
                           index_t in_features, index_t out_features, index_t padded_out,
                           Epilogue epilogue)
    : name_(std::move(name)),
      tp_(tp),
      in_features_(in_features),
      padded_out_(padded_out),
      epilogue_(epilogue),
      weight_(parameters.add(
          name_ + ".weight",
          ShardSpec::cut({out_features, in_features}, 0, padded_out, tp.num_pieces(), tp.owned()),
          {.uniform_bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(in_features)))},
          GradientRows::all)),
      bias_(epilogue == Epilogue::none
                ? nullptr
                : &parameters.add(
                      name_ + ".bias",
                      ShardSpec::cut({out_features}, 0, padded_out, tp.num_pieces(), tp.owned()),
                      {}, GradientRows::all)) {}

ColumnLinear::ColumnLinear(std::string name, Parameter& weight, TensorParallel& tp)
    : name_(std::move(name)),
      tp_(tp),
      in_features_(weight.spec.global()[1]),
      padded_out_(weight.spec.padded_extent()),
      epilogue_(Epilogue::none),
      weight_(weight),
      bias_(nullptr) {}

void ColumnLinear::set_turns(const std::vector<std::string>& names, index_t features) {
  const auto set = [&](Parameter& parameter, const char* suffix) {
    parameter.turns.rows = features;
    for (const std::string& name : names) parameter.turns.names.push_back(name + suffix);
  };
  set(weight_, ".weight");
  if (bias_) set(*bias_, ".bias");
}

Activation ColumnLinear::forward(Context& context, const Activation& x, Saved& saved, const Pass&) {
  const index_t t = x.num_rows();
  const Tensor x_tk =
      tp_.gather_rows(context, name_ + ".forward.gather", x.data, x.rows, in_features_);
  Activation y = Activation::cut(context, tp_, t, padded_out_);
  const ForwardWeights weights(context, weight_, t);
  std::vector<kernels::GemmCall> calls;
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s)
    calls.push_back(weights.product(s, x_tk.data(), y.piece(s)));
  kernels::gemm_batch(context, calls);
  saved.kept = {x};
  if (epilogue_ == Epilogue::bias_gelu) saved.kept.push_back(y.like(context));  // its slope
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    const index_t n = y.spec.piece(s).size();
    if (epilogue_ == Epilogue::bias_gelu) {
      kernels::add_bias_gelu(context, y.piece(s), bias_->value_of(s), y.piece(s),
                             saved.kept[1].piece(s), t, n);
    } else if (bias_) {
      kernels::add_bias(context, y.piece(s), bias_->value_of(s), y.piece(s), t, n);
    }
  }
  return y;
}

Activation ColumnLinear::backward_input(Context& context, const Activation& dy_out, Saved& saved,
                                        const Pass&) {
  const Activation x = saved.kept[0];
  Activation dy = dy_out;  // of the linear part's output
  if (epilogue_ == Epilogue::bias_gelu) {
    dy = saved.kept[1];  // in the slope's memory, which nobody needs any more
    for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
      kernels::multiply(context, dy_out.piece(s), dy.piece(s), dy.piece(s),
                        x.num_rows() * dy.spec.piece(s).size());
    }
  }
  const index_t t = x.num_rows();
  Tensor dx = tp_.reduce(
      context, name_ + ".backward_input.reduce", x.rows, in_features_, [&](index_t s, float* out) {
        kernels::gemm(context, input_product(t, dy.spec.piece(s).size(), in_features_, dy.piece(s),
                                             weight_.value_of(s), out));
      });
  // Between the passes only the rank's own rows of x are kept; the weight's gradient needs all.
  Activation x_tk{
      x.spec, Rows::all(t),
      tp_.gather_rows(context, name_ + ".backward_input.gather", x.data, x.rows, in_features_)};
  saved.kept = {std::move(x_tk), dy};
  return {x.spec, x.rows, std::move(dx)};
}

void ColumnLinear::backward_weight(Context& context, Saved& saved, const Pass& pass,
                                   const GradientReady& ready) {
  const Activation& x = saved.kept[0];
  const Activation& dy = saved.kept[1];
  const bool accumulate = !pass.first_of_lane;
  weight_products_by_piece(context, weight_, ready, [&](index_t s) {
    return weight_product(x.num_rows(), dy.spec.piece(s).size(), in_features_, dy.piece(s),
                          x.data.data(), weight_.gradient_of(s), accumulate);
  });
  if (!bias_) return;
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    kernels::sum_rows(context, dy.piece(s), x.num_rows(), dy.spec.piece(s).size(),
                      bias_->gradient_of(s), accumulate);
    ready(*bias_, s);
  }
}

std::vector<kernels::GemmCall> ColumnLinear::products(index_t num_rows, index_t) const {
  std::vector<kernels::GemmCall> all;
  for (index_t s = tp_.owned().begin; s < tp_.owned().end; ++s) {
    const index_t n = weight_.spec.piece(s).size();
    const index_t k = in_features_;
    all.push_back(forward_product(num_rows, n, k, nullptr, nullptr, nullptr));
    all.push_back(input_product(num_rows, n, k, nullptr, nullptr, nullptr));
    for (const bool accumulate : {false, true})
      all.push_back(weight_product(num_rows, n, k, nullptr, nullptr, nullptr, accumulate));
  }
  return all;
}

}  // namespace weft
