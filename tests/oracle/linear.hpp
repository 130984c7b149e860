// Linear layer, forward and backward, as three loops each.
// The orientation is PyTorch's: the weight is [outputs, inputs] (torch.nn.Linear).
#pragma once

#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

// y[t,n] = sum_k x[t,k] w[n,k] + b[n];  x [T,K], w [N,K], b [N] -> y [T,N].
inline Matrix linear_forward(const Matrix& x, const Matrix& w, const Matrix& b) {
  expect(x.cols == w.cols && b.size() == w.rows, "linear_forward: shapes");
  Matrix y(x.rows, w.rows);
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t n = 0; n < w.rows; ++n) {
      double sum = 0.0;
      for (std::size_t k = 0; k < x.cols; ++k) sum += x(t, k) * w(n, k);
      y(t, n) = sum + b[n];
    }
  }
  return y;
}

struct LinearGradients {
  Matrix dx;  // [T,K]
  Matrix dw;  // [N,K]
  Matrix db;  // [N]
};

// dx[t,k] = sum_n dy[t,n] w[n,k];  dw[n,k] = sum_t dy[t,n] x[t,k];  db[n] = sum_t dy[t,n].
inline LinearGradients linear_backward(const Matrix& x, const Matrix& w, const Matrix& dy) {
  expect(x.cols == w.cols && dy.rows == x.rows && dy.cols == w.rows, "linear_backward: shapes");
  LinearGradients g{Matrix(x.rows, x.cols), Matrix(w.rows, w.cols),
                    Matrix::vector(std::vector<double>(w.rows, 0.0))};
  for (std::size_t t = 0; t < x.rows; ++t) {
    for (std::size_t n = 0; n < w.rows; ++n) {
      for (std::size_t k = 0; k < x.cols; ++k) {
        g.dx(t, k) += dy(t, n) * w(n, k);
        g.dw(n, k) += dy(t, n) * x(t, k);
      }
      g.db[n] += dy(t, n);
    }
  }
  return g;
}

}  // namespace weft::oracle
