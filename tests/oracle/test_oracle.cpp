// Values worked out by hand or published, for every single function of the oracle.
#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>

#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/dropout.hpp"
#include "tests/oracle/gelu.hpp"
#include "tests/oracle/layer_norm.hpp"
#include "tests/oracle/linear.hpp"
#include "tests/oracle/optimizer.hpp"
#include "tests/oracle/philox.hpp"
#include "tests/oracle/tree_sum.hpp"

using namespace weft::oracle;

namespace {

// Relative to the value alone: Catch's default also forgives differences below its scale.
Approx close(double value) { return Approx(value).epsilon(1e-14).margin(1e-15); }

}  // namespace

TEST_CASE("linear forward and backward give small integers worked out by hand") {
  const Matrix x(2, 3, {1, 2, 3, 4, 5, 6});
  const Matrix w(2, 3, {1, 0, -1, 2, 1, 0});  // [outputs, inputs]
  const Matrix b = Matrix::vector({10, 20});
  // Row 0: 1-3+10 = 8, 2+2+20 = 24. Row 1: 4-6+10 = 8, 8+5+20 = 33.
  CHECK(linear_forward(x, w, b).values == std::vector<double>{8, 24, 8, 33});

  const Matrix dy(2, 2, {1, 2, 3, -1});
  const LinearGradients g = linear_backward(x, w, dy);
  // dx row 0 = 1 (1,0,-1) + 2 (2,1,0); row 1 = 3 (1,0,-1) - (2,1,0).
  CHECK(g.dx.values == std::vector<double>{5, 2, -1, 1, -1, -3});
  // dw row 0 = 1 (1,2,3) + 3 (4,5,6); row 1 = 2 (1,2,3) - (4,5,6).
  CHECK(g.dw.values == std::vector<double>{13, 17, 21, -2, -1, 0});
  CHECK(g.db.values == std::vector<double>{4, 1});
  CHECK(g.db.dims == 1);
}

TEST_CASE("gelu agrees with tables of erf and of the normal distribution") {
  // Abramowitz and Stegun, table 7.1: erf(0.5) and erf(1).
  CHECK(gelu(0.5 * std::sqrt(2.0)) == close(0.5 * 0.5 * std::sqrt(2.0) * (1 + 0.5204998778130465)));
  CHECK(gelu(std::sqrt(2.0)) == close(0.5 * std::sqrt(2.0) * (1 + 0.8427007929497149)));
  // The same, table 26.1: P(1), P(2), Z(1).
  CHECK(gelu(1.0) == close(0.8413447460685429));
  CHECK(gelu(-1.0) == close(-0.1586552539314571));
  CHECK(gelu(2.0) == close(2 * 0.9772498680518208));
  CHECK(gelu(0.0) == 0.0);
  CHECK(gelu_derivative(0.0) == 0.5);
  CHECK(gelu_derivative(1.0) == close(0.8413447460685429 + 0.2419707245191434));
  CHECK(gelu_derivative(-1.0) == close(0.1586552539314571 - 0.2419707245191434));
  // The tail keeps its digits: Q(10) = 7.61985302416052606e-24.
  CHECK(gelu(-10.0) == Approx(-7.619853024160526e-23).epsilon(1e-12).margin(0));
  CHECK(gelu(40.0) == 40.0);
}

TEST_CASE("layer norm of two values is worked out by hand") {
  // x = (1, 3): mean 2, biased variance 1; eps = 3 makes the divisor 2, so n = (-1/2, 1/2).
  const Matrix x(1, 2, {1, 3});
  const Matrix gain = Matrix::vector({4, 6});
  const Matrix bias = Matrix::vector({10, 20});
  CHECK(layer_norm_forward(x, gain, bias, 3.0).values == std::vector<double>{8, 23});

  // With u = (x0 - x1) / 2, n0 = u / sqrt(u^2 + 3), dn0/du = 3 / (u^2 + 3)^1.5 = 3/8 at u = -1,
  // so dn0/dx0 = 3/16. dy = (1, 0) and gain 4 give 12/16.
  const LayerNormGradients g = layer_norm_backward(x, gain, Matrix(1, 2, {1, 0}), 3.0);
  CHECK(g.dx.values == std::vector<double>{0.75, -0.75});
  CHECK(g.dgain.values == std::vector<double>{-0.5, 0});
  CHECK(g.dbias.values == std::vector<double>{1, 0});
}

TEST_CASE("layer norm divides by the biased variance") {
  // (1,2,3,4): the sum of squares is 5, so 5/4 and not 5/3; eps 1 makes the divisor 3/2.
  const Matrix ones = Matrix::vector({1, 1, 1, 1});
  const Matrix zeros = Matrix::vector({0, 0, 0, 0});
  const Matrix y = layer_norm_forward(Matrix(1, 4, {1, 2, 3, 4}), ones, zeros, 1.0);
  CHECK(y[0] == close(-1.0));
  CHECK(y[3] == close(1.0));
}

TEST_CASE("dropout scales what it keeps") {
  const Matrix x(1, 4, {1, 2, 3, 4});
  CHECK(dropout(x, Matrix(1, 4, {1, 0, 0, 1}), 0.75).values == std::vector<double>{4, 0, 0, 16});
  CHECK(dropout(x, Matrix(), 0.75).values == x.values);
  CHECK_THROWS_AS(dropout(x, Matrix(1, 3), 0.5), std::invalid_argument);
  // What is dropped is 0 also where it was not finite.
  const Matrix infinite(1, 1, {std::numeric_limits<double>::infinity()});
  CHECK(dropout(infinite, Matrix(1, 1, {0}), 0.5)[0] == 0.0);
  CHECK(residual(x, x).values == std::vector<double>{2, 4, 6, 8});
}

TEST_CASE("softmax cross entropy of logarithms is worked out by hand") {
  // exp gives 1 : 2 : 5, so p = (1/8, 2/8, 5/8); the second row is even.
  const Matrix logits(2, 3, {0, std::log(2.0), std::log(5.0), 7, 7, 7});
  const CrossEntropy e = softmax_cross_entropy(logits, {1, 2}, {0.5, 2.0});
  CHECK(e.row_losses[0] == close(std::log(4.0)));
  CHECK(e.row_losses[1] == close(std::log(3.0)));
  CHECK(e.loss == close(0.5 * std::log(4.0) + 2.0 * std::log(3.0)));
  const std::vector<double> expected{0.0625, -0.375, 0.3125, 2.0 / 3, 2.0 / 3, -4.0 / 3};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(e.dlogits[i] == close(expected[i]));
}

TEST_CASE("softmax cross entropy neither overflows nor loses a label of probability zero") {
  const CrossEntropy e = softmax_cross_entropy(Matrix(1, 2, {1000, 3000}), {0}, {1.0});
  CHECK(e.loss == 2000.0);
  CHECK(e.dlogits.values == std::vector<double>{-1, 1});
  CHECK_THROWS_AS(softmax_cross_entropy(Matrix(1, 2), {2}, {1.0}), std::invalid_argument);
}

TEST_CASE("mean weights count real rows only") {
  CHECK(mean_weights({true, true, false, true, true}) ==
        std::vector<double>{0.25, 0.25, 0, 0.25, 0.25});
  CHECK_THROWS_AS(mean_weights({false}), std::invalid_argument);
}

TEST_CASE("two steps of SGD with momentum are worked out by hand") {
  Matrix p(1, 1, {1});
  Matrix v(1, 1);
  // g = 2 + 0.1 * 1 = 2.1; v = 2.1; p = 1 - 0.21.
  sgd_update(p, v, Matrix(1, 1, {2}), 0.1, 0.5, 0.1);
  CHECK(v[0] == close(2.1));
  CHECK(p[0] == close(0.79));
  // g = -1 + 0.079 = -0.921; v = 1.05 - 0.921 = 0.129; p = 0.79 - 0.0129.
  sgd_update(p, v, Matrix(1, 1, {-1}), 0.1, 0.5, 0.1);
  CHECK(v[0] == close(0.129));
  CHECK(p[0] == close(0.7771));
}

TEST_CASE("two steps of AdamW are worked out by hand") {
  const AdamWSettings adamw{.beta1 = 0.5, .beta2 = 0.75, .eps = 2.0};
  Matrix p(1, 1, {1});
  Matrix m(1, 1);
  Matrix v(1, 1);
  // p = 1 - 0.05; m = 1, v = 1; m/bc1 = 2, sqrt(v/bc2) = sqrt(1/0.25) = 2; p -= 0.1 * 2 / (2 + 2).
  adamw_update(p, m, v, Matrix(1, 1, {2}), 1, 0.1, 0.5, adamw);
  CHECK(m[0] == 1.0);
  CHECK(v[0] == 1.0);
  CHECK(p[0] == close(0.9));
  // p = 0.9 * 0.95; m = -1/2, v = 7/4; bc1 = 3/4, bc2 = 7/16: m/bc1 = -2/3, sqrt(v/bc2) = 2;
  // p -= 0.1 * (-2/3) / 4.
  adamw_update(p, m, v, Matrix(1, 1, {-2}), 2, 0.1, 0.5, adamw);
  CHECK(m[0] == -0.5);
  CHECK(v[0] == 1.75);
  CHECK(p[0] == close(0.855 + 0.1 / 6));
}

TEST_CASE("weight decay is for tensors of two dims, one row or not") {
  CHECK(decay_of(Matrix(1, 3), 0.1) == 0.1);
  CHECK(decay_of(Matrix::vector({1, 2, 3}), 0.1) == 0.0);
}

TEST_CASE("clipping multiplies by min(1, clip / norm)") {
  NamedMatrices gradients;
  gradients["a"] = Matrix(1, 2, {2, 3});
  gradients["b"] = Matrix::vector({6});
  CHECK(global_norm(gradients) == 7.0);
  CHECK(clip_factor(7.0, 3.5) == 0.5);
  CHECK(clip_factor(7.0, 14.0) == 1.0);
  CHECK(clip_factor(7.0, 0.0) == 1.0);
  CHECK(clip_factor(0.0, 1.0) == 1.0);
}

TEST_CASE("the cosine schedule warms up, peaks, halves and ends where it should") {
  CHECK(constant_schedule(0.25) == 0.25);
  const auto lr = [](std::int64_t step) { return cosine_schedule(8.0, step, 4, 12, 0.5); };
  CHECK(lr(0) == 2.0);
  CHECK(lr(3) == 8.0);                                      // last warm-up step
  CHECK(lr(4) == 8.0);                                      // cos 0
  CHECK(lr(8) == close(6.0));                               // cos(pi/2): halfway from 8 to 4
  CHECK(lr(6) == close(4 + 2 * (1 + std::sqrt(0.5))));      // cos(pi/4)
  CHECK(lr(10) == close(4 + 2 * (1 - std::sqrt(0.5))));     // cos(3 pi/4)
  CHECK(cosine_schedule(1.0, 0, 0, 1, 0.0) == 1.0);         // no warm-up, one step
  CHECK(cosine_schedule(1.0, 1, 5, 3, 0.0) == close(0.4));  // a run that ends while warming up
  CHECK_THROWS_AS(lr(12), std::invalid_argument);
}

TEST_CASE("Philox 4x32-10 gives the published known answers") {
  // Random123's kat_vectors.
  CHECK(philox4x32_10({0, 0, 0, 0}, {0, 0}) ==
        PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t all = 0xffffffff;
  CHECK(philox4x32_10({all, all, all, all}, {all, all}) ==
        PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the tree has the shape of its definition") {
  const auto expression = [](std::size_t num_leaves) {
    std::vector<std::string> leaves;
    for (std::size_t i = 0; i < num_leaves; ++i) leaves.push_back(std::to_string(i));
    return tree_fold(leaves, 0, num_leaves, [](const std::string& left, const std::string& right) {
      return "(" + left + "+" + right + ")";
    });
  };
  CHECK(expression(1) == "0");
  CHECK(expression(2) == "(0+1)");
  CHECK(expression(3) == "((0+1)+2)");
  CHECK(expression(5) == "(((0+1)+(2+3))+4)");
  CHECK(expression(6) == "(((0+1)+(2+3))+(4+5))");
  CHECK(expression(8) == "(((0+1)+(2+3))+((4+5)+(6+7)))");
  CHECK(expression(12) == "((((0+1)+(2+3))+((4+5)+(6+7)))+((8+9)+(10+11)))");
  CHECK_THROWS_AS(expression(0), std::invalid_argument);
}

TEST_CASE("the tree rounds after each addition, in the type of its leaves") {
  const float tiny = 0x1p-24f;  // half a unit in the last place of 1: 1 + tiny rounds to 1
  CHECK(tree_sum<float>({1, tiny, tiny, tiny}) == 1 + 0x1p-23f);  // in index order: 1
  CHECK(tree_sum<float>({1e8f, 1, -1e8f, 1}) == 0.0f);            // (1e8 + 1) + (1 - 1e8)
  CHECK(tree_sum<float>({1e8f, -1e8f, 1, 1}) == 2.0f);
  CHECK(tree_sum<double>({1e8, 1, -1e8, 1}) == 2.0);
  // It does not start from zero.
  CHECK(std::signbit(tree_sum<float>({-0.0f, -0.0f, -0.0f})));
  CHECK(std::signbit(tree_sum<float>({-0.0f})));
}
