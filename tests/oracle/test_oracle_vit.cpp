// Attention and the whole vision transformer: values by hand, every gradient by central
// differences, the update, and what must not matter (padded samples) or must (positions).
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>

#include "tests/oracle/attention.hpp"
#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/finite_difference.hpp"
#include "tests/oracle/vit.hpp"

using namespace weft::oracle;

namespace {

Approx close(double value) { return Approx(value).epsilon(1e-13).margin(1e-14); }

NamedMatrices random_parameters(const VitShape& shape, std::uint64_t seed) {
  NamedMatrices parameters = zero_parameters(shape);
  for (auto& [name, p] : parameters) {
    const bool is_gain = name.ends_with(".gain");
    p.values =
        random_matrix(p.rows, p.cols, seed++, is_gain ? 0.5 : -0.7, is_gain ? 1.5 : 0.7).values;
  }
  return parameters;
}

std::vector<Matrix> random_masks(const VitShape& shape, std::size_t num_samples,
                                 std::uint64_t seed) {
  std::vector<Matrix> masks;
  for (std::size_t i = 0; i < shape.num_dropouts(); ++i) {
    Matrix mask = random_matrix(num_samples * shape.tokens(), shape.hidden, seed + i, 0.0, 1.0);
    for (double& value : mask.values) value = value >= shape.dropout ? 1.0 : 0.0;
    masks.push_back(mask);
  }
  return masks;
}

// Four tokens of twelve pixels.
const VitShape small{.side = 4,
                     .patch = 2,
                     .hidden = 4,
                     .layers = 2,
                     .heads = 2,
                     .mlp_ratio = 2,
                     .classes = 3,
                     .dropout = 0.25};

}  // namespace

TEST_CASE("attention of logarithms is worked out by hand") {
  // One head, d = 1: row 0 has scores (0, log 3), so p = (1/4, 3/4); row 1 has query 0.
  const double log3 = std::log(3.0);
  const Matrix qkv(2, 3, {1, 0, 4, 0, log3, 8});  // q, k, v of two tokens
  const Matrix out = attention_forward(qkv, 2, 1);
  CHECK(out[0] == close(4.0 / 4 + 8.0 * 3 / 4));
  CHECK(out[1] == close(6.0));

  // do = (1, 0): dp = (4, 8), mean 7, ds = (1/4 * -3, 3/4 * 1); dv = p.
  const Matrix g = attention_backward(qkv, Matrix(2, 1, {1, 0}), 2, 1);
  CHECK(g(0, 0) == close(0.75 * log3));  // dq of token 0: ds . k
  CHECK(g(1, 0) == close(0.0));          // token 1 asked for nothing
  CHECK(g(0, 1) == close(-0.75));        // dk = ds q
  CHECK(g(1, 1) == close(0.75));
  CHECK(g(0, 2) == close(0.25));
  CHECK(g(1, 2) == close(0.75));
}

TEST_CASE("attention divides scores by the root of a head's width and keeps heads apart") {
  // Two heads, d = 4: of each, token 0's q is (2, 0, 0, 0), so its scores are k's first element.
  // Head 1 has the values of head 0 plus 100, and keys the other way round.
  Matrix qkv(2, 24);
  const AttentionLayout at = attention_layout(qkv, 2, 2);
  REQUIRE(at.head_dim == 4);
  for (std::size_t head = 0; head < 2; ++head) {
    qkv(0, 12 * head) = 2.0;
    qkv(head == 0 ? 1 : 0, 12 * head + 4) = std::log(3.0);
    for (std::size_t token = 0; token < 2; ++token) {
      qkv(token, 12 * head + 8) = static_cast<double>(head) * 100 + static_cast<double>(token) * 4;
    }
  }
  const Matrix out = attention_forward(qkv, 2, 2);
  CHECK(out.cols == 8);
  CHECK(out(0, 0) == close(3.0));    // (0 + 3 * 4) / 4
  CHECK(out(0, 4) == close(101.0));  // (3 * 100 + 104) / 4
  CHECK(out(1, 0) == close(2.0));    // query 0: the mean
  CHECK(out(1, 4) == close(102.0));
}

TEST_CASE("attention backward, several samples and heads") {
  Matrix qkv = random_matrix(6, 18, 1, -2.0, 2.0);  // two samples of three tokens, heads of 3
  const Matrix dout = random_matrix(6, 6, 2);
  const auto f = [&] { return dot(attention_forward(qkv, 3, 2), dout); };
  CHECK(difference_from_gradient(f, qkv, attention_backward(qkv, dout, 3, 2)) == "");
  CHECK_THROWS_AS(attention_forward(qkv, 4, 2), std::invalid_argument);
  CHECK_THROWS_AS(attention_forward(qkv, 3, 4), std::invalid_argument);
}

TEST_CASE("samples do not see each other") {
  Matrix qkv = random_matrix(6, 12, 1);
  const Matrix before = attention_forward(qkv, 3, 2);
  qkv(5, 2) += 1.0;  // a key of the second sample
  const Matrix after = attention_forward(qkv, 3, 2);
  for (std::size_t t = 0; t < 3; ++t) CHECK(after(t, 0) == before(t, 0));
  CHECK(after(3, 0) != before(3, 0));
}

TEST_CASE("patches are tokens row by row, their pixels by channel, row and column") {
  const VitShape shape{.channels = 2, .side = 4, .patch = 2};
  Matrix image(1, shape.inputs());
  for (std::size_t c = 0; c < 2; ++c) {
    for (std::size_t y = 0; y < 4; ++y) {
      for (std::size_t x = 0; x < 4; ++x) {
        image[(c * 4 + y) * 4 + x] = static_cast<double>(100 * c + 10 * y + x);
      }
    }
  }
  const Matrix patches = patches_of(image, shape);
  CHECK(patches.values == std::vector<double>{0,  1,  10, 11, 100, 101, 110, 111,  // top left
                                              2,  3,  12, 13, 102, 103, 112, 113,  // top right
                                              20, 21, 30, 31, 120, 121, 130, 131,  //
                                              22, 23, 32, 33, 122, 123, 132, 133});
  CHECK_THROWS_AS(patches_of(image, VitShape{.channels = 2, .side = 4, .patch = 3}),
                  std::invalid_argument);
}

TEST_CASE("mean pooling and positions by hand") {
  const Matrix x(4, 2, {1, 2, 3, 4, 5, 6, 7, 8});  // two samples of two tokens
  CHECK(mean_pool(x, 2).values == std::vector<double>{2, 3, 6, 7});
  CHECK(mean_pool_backward(Matrix(2, 2, {2, 4, 6, 8}), 2).values ==
        std::vector<double>{1, 2, 1, 2, 3, 4, 3, 4});
  const Matrix position(2, 2, {10, 20, 30, 40});
  CHECK(add_position(x, position).values == std::vector<double>{11, 22, 33, 44, 15, 26, 37, 48});
  CHECK(position_gradient(x, 2).values == std::vector<double>{6, 8, 10, 12});
}

TEST_CASE("the transformer's parameters have the documented names and shapes") {
  const NamedMatrices p =
      zero_parameters(VitShape{.patch = 8, .hidden = 12, .layers = 1, .heads = 3});
  CHECK(p.size() == 2 + 1 + 12 + 4);
  const auto has = [&](const char* name, std::size_t rows, std::size_t cols, int dims) {
    const Matrix& m = p.at(name);
    return m.rows == rows && m.cols == cols && m.dims == dims;
  };
  CHECK(has("patch.weight", 12, 192, 2));
  CHECK(has("patch.bias", 1, 12, 1));
  CHECK(has("position", 16, 12, 2));
  CHECK(has("block.0.norm1.gain", 1, 12, 1));
  CHECK(has("block.0.qkv.weight", 36, 12, 2));
  CHECK(has("block.0.qkv.bias", 1, 36, 1));
  CHECK(has("block.0.proj.weight", 12, 12, 2));
  CHECK(has("block.0.norm2.bias", 1, 12, 1));
  CHECK(has("block.0.up.weight", 48, 12, 2));
  CHECK(has("block.0.down.weight", 12, 48, 2));
  CHECK(has("final_norm.gain", 1, 12, 1));
  CHECK(has("head.weight", 10, 12, 2));
}

TEST_CASE("every gradient of the transformer agrees with central differences") {
  const Matrix x = random_matrix(3, small.inputs(), 100);
  const std::vector<int> labels{0, 1, 2};
  const std::vector<double> weights = mean_weights({true, true, false});
  const std::vector<Matrix> masks = random_masks(small, 3, 200);
  NamedMatrices parameters = random_parameters(small, 300);
  const BatchGradients g =
      OracleVit(small, {}, parameters).loss_and_gradients(x, labels, weights, masks);
  REQUIRE(g.gradients.size() == parameters.size());
  REQUIRE(g.row_losses.size() == 3);
  for (auto& [name, p] : parameters) {
    INFO(name);
    const auto f = [&] {
      return OracleVit(small, {}, parameters).loss_and_gradients(x, labels, weights, masks).loss;
    };
    CHECK(difference_from_gradient(f, p, g.gradients.at(name)) == "");
    CHECK(g.gradients.at(name).dims == p.dims);
  }
  CHECK_THROWS_AS(OracleVit(small, {}, parameters)
                      .loss_and_gradients(x, labels, weights, {masks.begin(), masks.end() - 1}),
                  std::invalid_argument);
}

TEST_CASE("the transformer's logits are its forward pass without dropout") {
  const Matrix x = random_matrix(2, small.inputs(), 7);
  const OracleVit model(small, {}, random_parameters(small, 8));
  const std::vector<double> weights = mean_weights({true, true});
  CHECK(softmax_cross_entropy(model.logits(x), {2, 0}, weights).loss ==
        close(model.loss_and_gradients(x, {2, 0}, weights, {}).loss));
}

TEST_CASE("without positions the transformer does not see the order of patches") {
  const auto logit = [](bool has_position, bool swapped) {
    NamedMatrices parameters = random_parameters(small, 8);
    if (!has_position) parameters["position"] = Matrix(4, small.hidden);
    Matrix x = random_matrix(1, small.inputs(), 9);
    for (std::size_t i = 0; swapped && i < small.inputs(); ++i) {
      if (i % 16 < 8) std::swap(x[i], x[i + 8]);  // upper and lower patches
    }
    return OracleVit(small, {}, parameters).logits(x)[0];
  };
  CHECK(logit(false, true) == close(logit(false, false)));
  CHECK(std::abs(logit(true, true) - logit(true, false)) > 1e-3);
}

TEST_CASE("padded samples of weight zero leave the transformer's gradients") {
  const Matrix x = random_matrix(2, small.inputs(), 1);
  Matrix padded(3, small.inputs());
  for (std::size_t i = 0; i < padded.size(); ++i) padded[i] = x[i % x.size()];
  const OracleVit model(small, {}, random_parameters(small, 2));
  const BatchGradients brief = model.loss_and_gradients(x, {0, 1}, mean_weights({true, true}), {});
  const BatchGradients full =
      model.loss_and_gradients(padded, {0, 1, 0}, mean_weights({true, true, false}), {});
  CHECK(full.loss == close(brief.loss));
  for (const auto& [name, gradient] : brief.gradients) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      CHECK(full.gradients.at(name)[i] == close(gradient[i]));
    }
  }
}

TEST_CASE("weights of the transformer decay, positions do not") {
  OptimizerSettings settings;
  settings.kind = OptimizerKind::sgd;
  settings.lr = 0.1;
  settings.weight_decay = 0.5;
  OracleVit model(small, settings, random_parameters(small, 3));
  const NamedMatrices before = model.parameters();
  const Matrix x = random_matrix(1, small.inputs(), 4);
  const TrainStep step = model.train_step(x, {1}, {1.0}, {});
  for (const auto& [name, p] : model.parameters()) {
    INFO(name);
    const double decay = name.ends_with(".weight") ? 0.5 : 0.0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double old = before.at(name)[i];
      CHECK(p[i] == close(old - 0.1 * (step.gradients.at(name)[i] + decay * old)));
    }
  }
}

TEST_CASE("training lowers the transformer's loss") {
  const Matrix x = random_matrix(6, small.inputs(), 20);
  const std::vector<int> labels{0, 1, 2, 2, 1, 0};
  const std::vector<double> weights = mean_weights(std::vector<bool>(6, true));
  OptimizerSettings settings;
  settings.lr = 0.02;
  OracleVit model(small, settings, random_parameters(small, 21));
  const double before = model.train_step(x, labels, weights, {}).loss;
  double after = before;
  for (int step = 0; step < 60; ++step) after = model.train_step(x, labels, weights, {}).loss;
  CHECK(after < 0.3 * before);
}
