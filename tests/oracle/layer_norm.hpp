// Layer norm over the last dim, forward and backward (Ba, Kiros and Hinton, "Layer normalization",
// 2016, equations 3 and 4). The variance is the biased one, as in torch.nn.LayerNorm.
#pragma once

#include <cmath>

#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

struct RowMoments {
  double mean;
  double inverse_deviation;  // 1 / sqrt(variance + eps)
};

// mean = sum_k x[k] / K;  variance = sum_k (x[k] - mean)^2 / K.
inline RowMoments row_moments(const Matrix& x, std::size_t row, double eps) {
  const double length = static_cast<double>(x.cols);
  double mean = 0.0;
  for (std::size_t k = 0; k < x.cols; ++k) mean += x(row, k);
  mean /= length;
  double variance = 0.0;
  for (std::size_t k = 0; k < x.cols; ++k) variance += (x(row, k) - mean) * (x(row, k) - mean);
  variance /= length;
  return {mean, 1.0 / std::sqrt(variance + eps)};
}

// y[t,k] = gain[k] (x[t,k] - mean[t]) / sqrt(variance[t] + eps) + bias[k].
inline Matrix layer_norm_forward(const Matrix& x, const Matrix& gain, const Matrix& bias,
                                 double eps) {
  expect(gain.size() == x.cols && bias.size() == x.cols, "layer_norm_forward: shapes");
  Matrix y(x.rows, x.cols);
  for (std::size_t t = 0; t < x.rows; ++t) {
    const RowMoments row = row_moments(x, t, eps);
    for (std::size_t k = 0; k < x.cols; ++k) {
      y(t, k) = gain[k] * (x(t, k) - row.mean) * row.inverse_deviation + bias[k];
    }
  }
  return y;
}

struct LayerNormGradients {
  Matrix dx;     // [T,K]
  Matrix dgain;  // [K]
  Matrix dbias;  // [K]
};

// With n = (x - mean) / sqrt(variance + eps) and g = dy gain, both per row of K:
//   dx = (g - mean_k(g) - n mean_k(g n)) / sqrt(variance + eps)
//   dgain[k] = sum_t dy[t,k] n[t,k];  dbias[k] = sum_t dy[t,k]
// (the chain rule through mean and variance, as for batch norm in Ioffe and Szegedy 2015, sec. 3).
inline LayerNormGradients layer_norm_backward(const Matrix& x, const Matrix& gain, const Matrix& dy,
                                              double eps) {
  expect_same_shape(x, dy, "layer_norm_backward");
  expect(gain.size() == x.cols, "layer_norm_backward: gain");
  LayerNormGradients result{Matrix(x.rows, x.cols),
                            Matrix::vector(std::vector<double>(x.cols, 0.0)),
                            Matrix::vector(std::vector<double>(x.cols, 0.0))};
  const double length = static_cast<double>(x.cols);
  for (std::size_t t = 0; t < x.rows; ++t) {
    const RowMoments row = row_moments(x, t, eps);
    const auto normalized = [&](std::size_t k) {
      return (x(t, k) - row.mean) * row.inverse_deviation;
    };
    double mean_g = 0.0;
    double mean_gn = 0.0;
    for (std::size_t k = 0; k < x.cols; ++k) {
      mean_g += dy(t, k) * gain[k];
      mean_gn += dy(t, k) * gain[k] * normalized(k);
    }
    mean_g /= length;
    mean_gn /= length;
    for (std::size_t k = 0; k < x.cols; ++k) {
      const double n = normalized(k);
      result.dx(t, k) = row.inverse_deviation * (dy(t, k) * gain[k] - mean_g - n * mean_gn);
      result.dgain[k] += dy(t, k) * n;
      result.dbias[k] += dy(t, k);
    }
  }
  return result;
}

}  // namespace weft::oracle
