// Every backward pass of the oracle against central differences of its forward pass.
#include <catch2/catch.hpp>

#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/dropout.hpp"
#include "tests/oracle/finite_difference.hpp"
#include "tests/oracle/gelu.hpp"
#include "tests/oracle/layer_norm.hpp"
#include "tests/oracle/linear.hpp"

using namespace weft::oracle;

namespace {

// How far a Matrix is from wrong: the judge of this file must itself be able to say no.
Matrix scaled(Matrix m, double factor) {
  for (double& value : m.values) value *= factor;
  return m;
}

}  // namespace

TEST_CASE("the comparison with central differences notices a wrong gradient") {
  Matrix x = random_matrix(2, 3, 1);
  const auto f = [&] { return dot(x, x); };
  CHECK(difference_from_gradient(f, x, scaled(x, 2.0)) == "");
  CHECK(difference_from_gradient(f, x, scaled(x, 2.00001)) != "");
  CHECK(difference_from_gradient(f, x, Matrix(1, 3)) != "");
}

TEST_CASE("linear backward") {
  Matrix x = random_matrix(5, 4, 1);
  Matrix w = random_matrix(3, 4, 2);
  Matrix b = Matrix::vector(random_matrix(1, 3, 3).values);
  const Matrix dy = random_matrix(5, 3, 4);
  const auto f = [&] { return dot(linear_forward(x, w, b), dy); };
  const LinearGradients g = linear_backward(x, w, dy);
  CHECK(difference_from_gradient(f, x, g.dx) == "");
  CHECK(difference_from_gradient(f, w, g.dw) == "");
  CHECK(difference_from_gradient(f, b, g.db) == "");
}

TEST_CASE("gelu backward") {
  Matrix x = random_matrix(8, 8, 5, -5.0, 5.0);
  const Matrix dy = random_matrix(8, 8, 6);
  const auto f = [&] { return dot(gelu_forward(x), dy); };
  CHECK(difference_from_gradient(f, x, gelu_backward(x, dy)) == "");
}

TEST_CASE("layer norm backward") {
  // Offset and scale as well: the gradient must not depend on the row's mean.
  Matrix x = random_matrix(4, 7, 7, 1.0, 4.0);
  Matrix gain = Matrix::vector(random_matrix(1, 7, 8).values);
  Matrix bias = Matrix::vector(random_matrix(1, 7, 9).values);
  const Matrix dy = random_matrix(4, 7, 10);
  for (const double eps : {1e-5, 0.5}) {
    const auto f = [&] { return dot(layer_norm_forward(x, gain, bias, eps), dy); };
    const LayerNormGradients g = layer_norm_backward(x, gain, dy, eps);
    CHECK(difference_from_gradient(f, x, g.dx) == "");
    CHECK(difference_from_gradient(f, gain, g.dgain) == "");
    CHECK(difference_from_gradient(f, bias, g.dbias) == "");
  }
}

TEST_CASE("dropout backward is dropout of the gradient") {
  Matrix x = random_matrix(3, 5, 11);
  Matrix mask = random_matrix(3, 5, 12);
  for (double& value : mask.values) value = value > -0.4 ? 1.0 : 0.0;
  const Matrix dy = random_matrix(3, 5, 13);
  const auto f = [&] { return dot(dropout(x, mask, 0.3), dy); };
  CHECK(difference_from_gradient(f, x, dropout(dy, mask, 0.3)) == "");
}

TEST_CASE("softmax cross entropy backward, with uneven and zero weights") {
  Matrix logits = random_matrix(4, 6, 14, -3.0, 3.0);
  const std::vector<int> labels{0, 5, 2, 2};
  const std::vector<double> weights{0.5, 0.0, 2.0, 1.0};
  const auto f = [&] { return softmax_cross_entropy(logits, labels, weights).loss; };
  CHECK(difference_from_gradient(f, logits,
                                 softmax_cross_entropy(logits, labels, weights).dlogits) == "");
}
