#include "layers/layer_norm.hpp"

#include <cmath>

#include "core/kernels/reduce.hpp"

namespace weft {

LayerNorm::LayerNorm(const std::string& name, ParameterSet& parameters, index_t num_features)
    : num_features_(num_features),
      gain_(parameters.add(name + ".gain", ShardSpec::replicated({num_features}),
                           {.constant = 1.0f}, GradientRows::token_blocks)),
      bias_(parameters.add(name + ".bias", ShardSpec::replicated({num_features}), {},
                           GradientRows::token_blocks)) {}

Activation LayerNorm::forward(Context& context, const Activation& x, Saved& saved, const Pass&) {
  const index_t h = num_features_;
  Activation y = x.like(context);
  // [r, 2]: mean and 1 / sqrt(variance + eps) of each row.
  const Activation moments = Activation::whole(context, x.rows, 2);
  const float* x_rh = x.data.data();
  const float* gain_h = gain_.value;
  const float* bias_h = bias_.value;
  float* y_rh = y.data.data();
  float* moments_r2 = moments.data.data();
  const float inverse_h = 1.0f / static_cast<float>(h);
  context.device.parallel_for(
      "weft/layer_norm.forward", x.rows.mine.size(), KOKKOS_LAMBDA(index_t r) {
        const float* row = x_rh + r * h;
        const float mean = kernels::sum_of<float>(h, [=](index_t j) { return row[j]; }) * inverse_h;
        const float variance = kernels::sum_of<float>(h,
                                                      [=](index_t j) {
                                                        const float d = row[j] - mean;
                                                        return d * d;
                                                      }) *
                               inverse_h;
        const float scale = 1.0f / std::sqrt(variance + eps);
        for (index_t j = 0; j < h; ++j)
          y_rh[r * h + j] = (row[j] - mean) * scale * gain_h[j] + bias_h[j];
        moments_r2[2 * r] = mean;
        moments_r2[2 * r + 1] = scale;
      });
  saved.kept = {x, moments};
  return y;
}

// With xhat = (x - mean) scale and g = dy gain:
//   dx = scale (g - mean(g) - xhat mean(g xhat));  dgain = sum over rows of dy xhat;  dbias = sum
//   of dy
Activation LayerNorm::backward_input(Context& context, const Activation& dy, Saved& saved,
                                     const Pass&) {
  const index_t h = num_features_;
  const Activation& x = saved.kept[0];
  Activation dx = x.like(context);
  // dy xhat, which backward_weight sums over rows.
  const Activation dgain = x.like(context);
  const float* x_rh = x.data.data();
  const float* moments_r2 = saved.kept[1].data.data();
  const float* dy_rh = dy.data.data();
  const float* gain_h = gain_.value;
  float* dx_rh = dx.data.data();
  float* dgain_rh = dgain.data.data();
  const float inverse_h = 1.0f / static_cast<float>(h);
  context.device.parallel_for(
      "weft/layer_norm.backward_input", x.rows.mine.size(), KOKKOS_LAMBDA(index_t r) {
        const float* x_row = x_rh + r * h;
        const float* dy_row = dy_rh + r * h;
        const float mean = moments_r2[2 * r];
        const float scale = moments_r2[2 * r + 1];
        const float mean_g =
            kernels::sum_of<float>(h, [=](index_t j) { return dy_row[j] * gain_h[j]; }) * inverse_h;
        const float mean_g_xhat =
            kernels::sum_of<float>(
                h, [=](index_t j) { return dy_row[j] * gain_h[j] * ((x_row[j] - mean) * scale); }) *
            inverse_h;
        for (index_t j = 0; j < h; ++j) {
          const float xhat = (x_row[j] - mean) * scale;
          dx_rh[r * h + j] = scale * (dy_row[j] * gain_h[j] - mean_g - xhat * mean_g_xhat);
          dgain_rh[r * h + j] = dy_row[j] * xhat;
        }
      });
  saved.kept = {dgain, dy};
  return dx;
}

void LayerNorm::backward_weight(Context& context, Saved& saved, const Pass& pass,
                                const GradientReady&) {
  const bool accumulate = !pass.first_of_lane;
  const auto sum = [&](const Activation& x, const Parameter& parameter) {
    kernels::sum_token_blocks(context, x.data.data(), x.rows.mine, x.num_rows(), num_features_,
                              parameter.partials, parameter.partial_stride, accumulate);
  };
  sum(saved.kept[0], gain_);
  sum(saved.kept[1], bias_);
}

}  // namespace weft
