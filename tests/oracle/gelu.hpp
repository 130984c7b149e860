// The exact GELU and its derivative (Hendrycks and Gimpel, "Gaussian error linear units", 2016,
// equation in section 2): x times the normal distribution function. Not the tanh approximation.
#pragma once

#include <cmath>
#include <numbers>

#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

// Phi(x) = (1 + erf(x / sqrt 2)) / 2. Below zero as erfc, which keeps its digits where 1 + erf
// would cancel: the relative error stays small in the far tail as well.
inline double normal_distribution(double x) {
  return x < 0.0 ? 0.5 * std::erfc(-x / std::numbers::sqrt2)
                 : 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2));
}

// gelu(x) = x Phi(x).
inline double gelu(double x) { return x * normal_distribution(x); }

// gelu'(x) = Phi(x) + x phi(x), phi(x) = exp(-x^2 / 2) / sqrt(2 pi).
inline double gelu_derivative(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
  return normal_distribution(x) + x * density;
}

inline Matrix gelu_forward(const Matrix& x) {
  Matrix y = x;
  for (double& value : y.values) value = gelu(value);
  return y;
}

// dx = dy gelu'(x).
inline Matrix gelu_backward(const Matrix& x, const Matrix& dy) {
  expect_same_shape(x, dy, "gelu_backward");
  Matrix dx = dy;
  for (std::size_t i = 0; i < x.size(); ++i) dx[i] *= gelu_derivative(x[i]);
  return dx;
}

}  // namespace weft::oracle
