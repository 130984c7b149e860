// One update of one tensor by SGD with momentum or AdamW, global-norm clipping, and the
// learning-rate schedules. Functions only: who keeps the moments is the caller's question.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

// torch.optim.SGD with dampening 0, no Nesterov; weight decay is coupled (an L2 term):
//   g += decay p;  v = momentum v + g;  p -= lr v.
inline void sgd_update(Matrix& p, Matrix& v, const Matrix& gradient, double lr, double momentum,
                       double weight_decay) {
  expect_same_shape(p, gradient, "sgd_update");
  expect_same_shape(p, v, "sgd_update");
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = gradient[i] + weight_decay * p[i];
    v[i] = momentum * v[i] + g;
    p[i] -= lr * v[i];
  }
}

struct AdamWSettings {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
};

// torch.optim.AdamW; weight decay is decoupled (Loshchilov and Hutter, ICLR 2019, algorithm 2).
// `step` counts from 1:
//   p *= 1 - lr decay;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   p -= lr / (1 - b1^step) m / (sqrt(v) / sqrt(1 - b2^step) + eps)
inline void adamw_update(Matrix& p, Matrix& m, Matrix& v, const Matrix& gradient, std::int64_t step,
                         double lr, double weight_decay, const AdamWSettings& adamw) {
  expect_same_shape(p, gradient, "adamw_update");
  expect_same_shape(p, m, "adamw_update");
  expect_same_shape(p, v, "adamw_update");
  expect(step >= 1, "adamw_update: step counts from 1");
  const double correction1 = 1.0 - std::pow(adamw.beta1, static_cast<double>(step));
  const double correction2 = 1.0 - std::pow(adamw.beta2, static_cast<double>(step));
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double g = gradient[i];
    p[i] *= 1.0 - lr * weight_decay;
    m[i] = adamw.beta1 * m[i] + (1.0 - adamw.beta1) * g;
    v[i] = adamw.beta2 * v[i] + (1.0 - adamw.beta2) * g * g;
    p[i] -= lr / correction1 * m[i] / (std::sqrt(v[i]) / std::sqrt(correction2) + adamw.eps);
  }
}

// Only matrices decay: biases, gains and other vectors do not.
inline double decay_of(const Matrix& p, double weight_decay) {
  return p.dims == 2 ? weight_decay : 0.0;
}

// sqrt of the sum of the squares of all elements of all tensors.
inline double global_norm(const NamedMatrices& gradients) {
  double sum = 0.0;
  for (const auto& [name, gradient] : gradients) {
    for (const double g : gradient.values) sum += g * g;
  }
  return std::sqrt(sum);
}

// The factor that is always multiplied into the gradients: min(1, clip / norm); clip 0 means off
// (Pascanu, Mikolov and Bengio, ICML 2013, algorithm 1; without torch's 1e-6 in the divisor).
inline double clip_factor(double norm, double clip) {
  if (clip == 0.0 || norm == 0.0) return 1.0;
  return std::min(1.0, clip / norm);
}

inline double constant_schedule(double lr) { return lr; }

// Linear warm-up, then half a cosine (Loshchilov and Hutter, "SGDR", ICLR 2017, equation 5, without
// restarts). Step s counts from 0, W warm-up steps, N steps in all, final fraction f:
//   s < W: lr (s + 1) / W;  else lr (f + (1 - f) (1 + cos(pi (s - W) / (N - W))) / 2).
inline double cosine_schedule(double lr, std::int64_t s, std::int64_t warmup_steps,
                              std::int64_t total_steps, double final_fraction) {
  expect(s >= 0 && s < total_steps, "cosine_schedule: step outside the run");
  const auto real = [](std::int64_t i) { return static_cast<double>(i); };
  if (s < warmup_steps) return lr * real(s + 1) / real(warmup_steps);
  const double progress = real(s - warmup_steps) / real(total_steps - warmup_steps);
  const double wave = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
  return lr * (final_fraction + (1.0 - final_fraction) * wave);
}

}  // namespace weft::oracle
