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

Activation LayerNorm::forward(Context& context, const Activation& x, Saved& saved,
                              const Pass& pass) {
  const index_t h = num_features_;
  Activation y{x.spec, Tensor(context.arena, MemoryKind::activations, x.data.shape())};
  // [t, 2]: mean and 1 / sqrt(variance + eps) of each row.
  Activation moments{ShardSpec::replicated({pass.num_rows, 2}),
                     Tensor(context.arena, MemoryKind::activations, {pass.num_rows, 2})};
  const float* x_th = x.data.data();
  const float* gain_h = gain_.value;
  const float* bias_h = bias_.value;
  float* y_th = y.data.data();
  float* moments_t2 = moments.data.data();
  const float inverse_h = 1.0f / static_cast<float>(h);
  context.device.parallel_for(
      "weft/layer_norm.forward", pass.num_rows, KOKKOS_LAMBDA(index_t t) {
        const float* row = x_th + t * h;
        const float mean = kernels::sum_of<float>(h, [=](index_t j) { return row[j]; }) * inverse_h;
        const float variance = kernels::sum_of<float>(h,
                                                      [=](index_t j) {
                                                        const float d = row[j] - mean;
                                                        return d * d;
                                                      }) *
                               inverse_h;
        const float scale = 1.0f / std::sqrt(variance + eps);
        for (index_t j = 0; j < h; ++j)
          y_th[t * h + j] = (row[j] - mean) * scale * gain_h[j] + bias_h[j];
        moments_t2[2 * t] = mean;
        moments_t2[2 * t + 1] = scale;
      });
  saved.kept = {x, moments};
  return y;
}

// With xhat = (x - mean) scale and g = dy gain:
//   dx = scale (g - mean(g) - xhat mean(g xhat));  dgain = sum over rows of dy xhat;  dbias = sum
//   of dy
Activation LayerNorm::backward_input(Context& context, const Activation& dy, Saved& saved,
                                     const Pass& pass) {
  const index_t h = num_features_;
  const Activation& x = saved.kept[0];
  Activation dx{x.spec, Tensor(context.arena, MemoryKind::activations, x.data.shape())};
  // dy xhat, which backward_weight sums over rows.
  Activation dgain{x.spec, Tensor(context.arena, MemoryKind::activations, x.data.shape())};
  const float* x_th = x.data.data();
  const float* moments_t2 = saved.kept[1].data.data();
  const float* dy_th = dy.data.data();
  const float* gain_h = gain_.value;
  float* dx_th = dx.data.data();
  float* dgain_th = dgain.data.data();
  const float inverse_h = 1.0f / static_cast<float>(h);
  context.device.parallel_for(
      "weft/layer_norm.backward_input", pass.num_rows, KOKKOS_LAMBDA(index_t t) {
        const float* x_row = x_th + t * h;
        const float* dy_row = dy_th + t * h;
        const float mean = moments_t2[2 * t];
        const float scale = moments_t2[2 * t + 1];
        const float mean_g =
            kernels::sum_of<float>(h, [=](index_t j) { return dy_row[j] * gain_h[j]; }) * inverse_h;
        const float mean_g_xhat =
            kernels::sum_of<float>(
                h, [=](index_t j) { return dy_row[j] * gain_h[j] * ((x_row[j] - mean) * scale); }) *
            inverse_h;
        for (index_t j = 0; j < h; ++j) {
          const float xhat = (x_row[j] - mean) * scale;
          dx_th[t * h + j] = scale * (dy_row[j] * gain_h[j] - mean_g - xhat * mean_g_xhat);
          dgain_th[t * h + j] = dy_row[j] * xhat;
        }
      });
  saved.kept = {dgain, dy};
  return dx;
}

void LayerNorm::backward_weight(Context& context, Saved& saved, const Pass& pass,
                                const GradientReady&) {
  const Range rows{0, pass.num_rows};
  const bool accumulate = !pass.first_of_lane;
  kernels::sum_token_blocks(context, saved.kept[0].data.data(), rows, pass.num_rows, num_features_,
                            gain_.partials, gain_.partial_stride, accumulate);
  kernels::sum_token_blocks(context, saved.kept[1].data.data(), rows, pass.num_rows, num_features_,
                            bias_.partials, bias_.partial_stride, accumulate);
}

Cost LayerNorm::cost(index_t num_rows) const {
  return {8.0 * static_cast<double>(num_rows * num_features_),
          2 * num_rows * num_features_ * index_t{sizeof(float)}};
}

}  // namespace weft
