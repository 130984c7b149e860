// Dropout with a mask that is given, and the residual sum.
// No random numbers here: who drops what is the caller's question (see philox.hpp).
#pragma once

#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

// y = x mask / (1 - p), mask 1 where kept and 0 where dropped ("inverted" dropout, as
// torch.nn.Dropout; Srivastava et al., JMLR 15, 2014, section 10). Linear in x, so the backward
// pass is the same function applied to dy. An empty mask (0 x 0) keeps all and scales nothing:
// evaluation, or p = 0.
inline Matrix dropout(const Matrix& x, const Matrix& mask, double p) {
  if (mask.size() == 0) return x;
  expect_same_shape(x, mask, "dropout");
  expect(p >= 0.0 && p < 1.0, "dropout: p must be in [0, 1)");
  Matrix y = x;
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = mask[i] != 0.0 ? x[i] / (1.0 - p) : 0.0;
  return y;
}

// a + b; backward hands dy to both.
inline Matrix residual(const Matrix& a, const Matrix& b) {
  expect_same_shape(a, b, "residual");
  Matrix sum = a;
  for (std::size_t i = 0; i < a.size(); ++i) sum[i] += b[i];
  return sum;
}

}  // namespace weft::oracle
