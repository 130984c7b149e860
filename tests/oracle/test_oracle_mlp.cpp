// The whole classifier: a forward pass by hand, every gradient by central differences, the update
// against its own single functions, and what padding must not change.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>

#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/finite_difference.hpp"
#include "tests/oracle/gelu.hpp"
#include "tests/oracle/mlp.hpp"

using namespace weft::oracle;

namespace {

Approx close(double value) { return Approx(value).epsilon(1e-13).margin(1e-14); }

NamedMatrices random_parameters(const MlpShape& shape, std::uint64_t seed) {
  NamedMatrices parameters = zero_parameters(shape);
  for (auto& [name, p] : parameters) {
    const bool is_gain = name.ends_with(".gain");
    p.values =
        random_matrix(p.rows, p.cols, seed++, is_gain ? 0.5 : -0.7, is_gain ? 1.5 : 0.7).values;
  }
  return parameters;
}

std::vector<Matrix> random_masks(const MlpShape& shape, std::size_t num_rows, std::uint64_t seed) {
  std::vector<Matrix> masks;
  for (std::size_t i = 0; i < shape.layers; ++i) {
    Matrix mask = random_matrix(num_rows, shape.hidden, seed + i, 0.0, 1.0);
    for (double& value : mask.values) value = value >= shape.dropout ? 1.0 : 0.0;
    masks.push_back(mask);
  }
  return masks;
}

const MlpShape small{
    .inputs = 5, .hidden = 4, .layers = 2, .mlp_ratio = 3, .classes = 3, .dropout = 0.25};

}  // namespace

TEST_CASE("parameters have the documented names and shapes") {
  const NamedMatrices p = zero_parameters({.hidden = 8, .layers = 1});
  CHECK(p.size() == 12);
  CHECK((p.at("stem.weight").rows == 8 && p.at("stem.weight").cols == 3072));
  CHECK((p.at("block.0.up.weight").rows == 32 && p.at("block.0.up.weight").cols == 8));
  CHECK((p.at("block.0.down.weight").rows == 8 && p.at("block.0.down.weight").cols == 32));
  CHECK((p.at("head.weight").rows == 10 && p.at("head.weight").cols == 8));
  for (const char* name :
       {"stem.bias", "block.0.norm.gain", "block.0.norm.bias", "block.0.up.bias",
        "block.0.down.bias", "final_norm.gain", "final_norm.bias", "head.bias"}) {
    CHECK(p.at(name).dims == 1);
  }
  NamedMatrices wrong = p;
  wrong.erase("head.bias");
  CHECK_THROWS_AS(OracleMlp({.hidden = 8, .layers = 1}, {}, wrong), std::invalid_argument);
}

TEST_CASE("a forward and backward pass worked out by hand") {
  // The stem is the identity, the block adds gelu(1) times 1 to the second feature where its mask
  // keeps it, doubled for p = 1/2; final norm with eps = 3.
  const MlpShape shape{.inputs = 2,
                       .hidden = 2,
                       .layers = 1,
                       .mlp_ratio = 1,
                       .classes = 2,
                       .dropout = 0.5,
                       .norm_eps = 3.0};
  NamedMatrices p = zero_parameters(shape);
  p.at("stem.weight").values = {1, 0, 0, 1};
  p.at("block.0.up.bias").values = {1, 0};
  p.at("block.0.down.weight").values = {0, 0, 1, 0};
  p.at("final_norm.gain").values = {1, 1};
  p.at("head.weight").values = {0, 0, 0, 2 * std::log(3.0)};
  const OracleMlp model(shape, {}, p);

  // Dropped: h = (1, 3), n = (-1/2, 1/2), logits (0, log 3), p = (1/4, 3/4).
  const std::vector<Matrix> dropped{Matrix(1, 2, {1, 0})};
  const BatchGradients g = model.loss_and_gradients(Matrix(1, 2, {1, 3}), {0}, {1.0}, dropped);
  CHECK(g.loss == close(std::log(4.0)));
  CHECK(g.gradients.at("head.bias")[0] == close(-0.75));
  CHECK(g.gradients.at("head.weight")(0, 0) == close(0.375));
  CHECK(g.gradients.at("head.weight")(1, 1) == close(0.375));
  // dn = (0, 3/4 * 2 log 3); dn1/dh1 = 3/16, so dh = (-, +) 9/32 log 3: the stem's bias gets it,
  // and what was dropped gives block.0.down.bias nothing of its second feature.
  CHECK(g.gradients.at("final_norm.bias")[1] == close(1.5 * std::log(3.0)));
  CHECK(g.gradients.at("stem.bias")[1] == close(9.0 / 32 * std::log(3.0)));
  CHECK(g.gradients.at("stem.bias")[0] == close(-9.0 / 32 * std::log(3.0)));
  CHECK(g.gradients.at("stem.weight")(1, 1) == close(27.0 / 32 * std::log(3.0)));
  CHECK(g.gradients.at("block.0.down.bias")[1] == 0.0);
  CHECK(g.gradients.at("block.0.down.bias")[0] == close(-9.0 / 16 * std::log(3.0)));

  // Kept: h = (1, 3 + 2 gelu(1)); without masks: h = (1, 3 + gelu(1)).
  const auto loss_of = [](double u) {  // u: half the difference of the features
    return std::log(1 + std::exp(2 * std::log(3.0) * u / std::sqrt(u * u + 3)));
  };
  const Matrix x(1, 2, {1, 3});
  CHECK(model.loss_and_gradients(x, {0}, {1.0}, {Matrix(1, 2, {0, 1})}).loss ==
        close(loss_of(1 + gelu(1.0))));
  CHECK(model.loss_and_gradients(x, {0}, {1.0}, {}).loss == close(loss_of(1 + gelu(1.0) / 2)));
  CHECK(softmax_cross_entropy(model.logits(x), {0}, {1.0}).loss ==
        close(loss_of(1 + gelu(1.0) / 2)));
}

TEST_CASE("every gradient of the whole model agrees with central differences") {
  const std::size_t num_rows = 6;
  const Matrix x = random_matrix(num_rows, small.inputs, 100);
  const std::vector<int> labels{0, 1, 2, 2, 1, 0};
  const std::vector<double> weights = mean_weights({true, true, true, true, false, true});
  const std::vector<Matrix> masks = random_masks(small, num_rows, 200);
  NamedMatrices parameters = random_parameters(small, 300);
  const BatchGradients g =
      OracleMlp(small, {}, parameters).loss_and_gradients(x, labels, weights, masks);
  REQUIRE(g.gradients.size() == parameters.size());
  for (auto& [name, p] : parameters) {
    INFO(name);
    const auto f = [&] {
      return OracleMlp(small, {}, parameters).loss_and_gradients(x, labels, weights, masks).loss;
    };
    CHECK(difference_from_gradient(f, p, g.gradients.at(name)) == "");
    CHECK(g.gradients.at(name).dims == p.dims);
  }
}

TEST_CASE("padded rows of weight zero leave loss and gradients of the short batch") {
  const Matrix x = random_matrix(3, small.inputs, 1);
  Matrix padded(5, small.inputs);
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t k = 0; k < small.inputs; ++k) padded(t, k) = x(t < 3 ? t : 0, k);
  }
  const OracleMlp model(small, {}, random_parameters(small, 2));
  const BatchGradients brief =
      model.loss_and_gradients(x, {0, 1, 2}, mean_weights({true, true, true}), {});
  const BatchGradients full = model.loss_and_gradients(
      padded, {0, 1, 2, 0, 0}, mean_weights({true, true, true, false, false}), {});
  CHECK(full.loss == close(brief.loss));
  for (const auto& [name, gradient] : brief.gradients) {
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      CHECK(full.gradients.at(name)[i] == close(gradient[i]));
    }
  }
}

TEST_CASE("a training step is gradients, clipping, schedule and update in that order") {
  const Matrix x = random_matrix(4, small.inputs, 7);
  const std::vector<int> labels{0, 1, 2, 1};
  const std::vector<double> weights = mean_weights({true, true, true, true});
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    OptimizerSettings settings;
    settings.kind = kind;
    settings.lr = 0.1;
    settings.weight_decay = 0.5;
    settings.clip_norm = 0.01;
    settings.momentum = 0.9;
    settings.adamw.eps = 1e-3;
    settings.schedule = ScheduleKind::cosine;
    settings.warmup_steps = 2;
    settings.total_steps = 4;
    OracleMlp model(small, settings, random_parameters(small, 8));
    NamedMatrices p = model.parameters();
    NamedMatrices first = zero_parameters(small);
    NamedMatrices second = zero_parameters(small);
    // 0.1 (s+1)/2 while warming up, then 0.1 (1 + cos(pi (s-2)/2)) / 2.
    const double lrs[4] = {0.05, 0.1, 0.1, 0.05};
    for (int s = 0; s < 4; ++s) {
      const TrainStep step = model.train_step(x, labels, weights, random_masks(small, 4, 10));
      CHECK(step.lr == close(lrs[s]));
      CHECK(step.gradient_norm > 0.01);
      CHECK(step.clip_factor == close(0.01 / step.gradient_norm));
      for (auto& [name, value] : p) {
        Matrix g = step.gradients.at(name);
        for (double& element : g.values) element *= 0.01 / step.gradient_norm;
        const bool decays = name.ends_with(".weight");
        if (kind == OptimizerKind::sgd) {
          sgd_update(value, first.at(name), g, lrs[s], 0.9, decays ? 0.5 : 0.0);
        } else {
          adamw_update(value, first.at(name), second.at(name), g, s + 1, lrs[s], decays ? 0.5 : 0.0,
                       settings.adamw);
        }
        for (std::size_t i = 0; i < value.size(); ++i) {
          CHECK(model.parameters().at(name)[i] == close(value[i]));
        }
      }
    }
    CHECK(model.steps_done() == 4);
  }
}

TEST_CASE("training lowers the loss") {
  const Matrix x = random_matrix(6, small.inputs, 20);
  const std::vector<int> labels{0, 1, 2, 2, 1, 0};
  const std::vector<double> weights = mean_weights(std::vector<bool>(6, true));
  OptimizerSettings settings;
  settings.lr = 0.02;
  OracleMlp model(small, settings, random_parameters(small, 21));
  const double before = model.train_step(x, labels, weights, {}).loss;
  double after = before;
  for (int step = 0; step < 60; ++step) after = model.train_step(x, labels, weights, {}).loss;
  CHECK(after < 0.3 * before);
}
