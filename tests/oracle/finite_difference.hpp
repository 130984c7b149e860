// Central differences: what a backward pass is judged by.
// Relative bound 1e-6 with step 1e-5, in double; the absolute part is the rounding of the loss
// itself, about 1e-16 |loss| / step, with room for its sums.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

// [rows, cols] uniform in [low, high), from a seed.
inline Matrix random_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed,
                            double low = -1.0, double high = 1.0) {
  std::mt19937_64 generator(seed);
  Matrix result(rows, cols);
  for (double& value : result.values) {
    const double unit = static_cast<double>(generator() >> 11) * 0x1p-53;
    value = low + (high - low) * unit;
  }
  return result;
}

// sum_i a_i b_i: makes a scalar of a matrix, with `b` as the gradient of that scalar to `a`.
inline double dot(const Matrix& a, const Matrix& b) {
  expect(a.size() == b.size(), "dot: shapes");
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Compares `gradient` with (f(x + h) - f(x - h)) / 2h for every element of `x`, which `f()` reads.
// Returns "" where all agree, else the first element that does not.
template <class Function>
std::string difference_from_gradient(Function f, Matrix& x, const Matrix& gradient) {
  constexpr double h = 1e-5;
  constexpr double relative = 1e-6;
  constexpr double absolute = 2e-10;
  if (x.size() != gradient.size()) return "sizes differ";
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + h;
    const double above = f();
    x[i] = kept - h;
    const double below = f();
    x[i] = kept;
    const double numeric = (above - below) / (2.0 * h);
    const double bound = absolute * std::max(1.0, std::abs(above)) + relative * std::abs(numeric);
    if (!(std::abs(numeric - gradient[i]) <= bound)) {
      return "element " + std::to_string(i) + ": gradient " + std::to_string(gradient[i]) +
             ", central difference " + std::to_string(numeric);
    }
  }
  return "";
}

}  // namespace weft::oracle
