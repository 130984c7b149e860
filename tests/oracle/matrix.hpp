// A row-major matrix of doubles: the only data type of the oracle.
// It exists so that formulas read as indices; it is not a tensor library: no views, no operators.
#pragma once

#include <cstddef>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace weft::oracle {

struct Matrix {
  std::size_t rows = 0;
  std::size_t cols = 0;
  int dims = 2;  // 1 for a bias or a gain, which is stored as one row; weight decay asks for this
  std::vector<double> values;

  Matrix() = default;
  // [rows, cols], all zero.
  Matrix(std::size_t num_rows, std::size_t num_cols)
      : rows(num_rows), cols(num_cols), values(num_rows * num_cols, 0.0) {}
  Matrix(std::size_t num_rows, std::size_t num_cols, std::vector<double> row_major)
      : rows(num_rows), cols(num_cols), values(std::move(row_major)) {
    if (values.size() != rows * cols) throw std::invalid_argument("Matrix: rows * cols != values");
  }

  // A tensor of one dim, as one row.
  static Matrix vector(std::vector<double> elements) {
    const std::size_t length = elements.size();
    Matrix result(1, length, std::move(elements));
    result.dims = 1;
    return result;
  }

  // Same shape and dims, all zero.
  static Matrix zeros_like(const Matrix& other) {
    Matrix result(other.rows, other.cols);
    result.dims = other.dims;
    return result;
  }

  double& operator()(std::size_t row, std::size_t col) { return values[row * cols + col]; }
  double operator()(std::size_t row, std::size_t col) const { return values[row * cols + col]; }
  double& operator[](std::size_t i) { return values[i]; }
  double operator[](std::size_t i) const { return values[i]; }
  std::size_t size() const { return values.size(); }
};

// Parameters, gradients and moments by global name.
using NamedMatrices = std::map<std::string, Matrix>;

inline void expect(bool condition, const std::string& message) {
  if (!condition) throw std::invalid_argument("oracle: " + message);
}

inline void expect_same_shape(const Matrix& a, const Matrix& b, const std::string& where) {
  expect(a.rows == b.rows && a.cols == b.cols, where + ": shapes differ");
}

}  // namespace weft::oracle
