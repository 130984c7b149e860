// The residual MLP classifier of mlp.hpp, composed of the single functions beside it.
// Obvious, not fast: each block's intermediate values are kept by name and walked back in reverse.
#include "tests/oracle/mlp.hpp"

#include <utility>

#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/dropout.hpp"
#include "tests/oracle/gelu.hpp"
#include "tests/oracle/layer_norm.hpp"
#include "tests/oracle/linear.hpp"

namespace weft::oracle {
namespace {

std::string block_name(std::size_t block) { return "block." + std::to_string(block) + "."; }

Matrix zero_vector(std::size_t length) { return Matrix::vector(std::vector<double>(length, 0.0)); }

// What the backward pass of one block needs.
struct BlockValues {
  Matrix x;           // into the block
  Matrix normalized;  // after its layer norm
  Matrix up;          // before GELU
  Matrix activated;   // after GELU
};

const Matrix& mask_of(const std::vector<Matrix>& masks, std::size_t block) {
  static const Matrix keep_all;
  return masks.empty() ? keep_all : masks[block];
}

}  // namespace

NamedMatrices zero_parameters(const MlpShape& shape) {
  const std::size_t wide = shape.mlp_ratio * shape.hidden;
  NamedMatrices result;
  result["stem.weight"] = Matrix(shape.hidden, shape.inputs);
  result["stem.bias"] = zero_vector(shape.hidden);
  for (std::size_t i = 0; i < shape.layers; ++i) {
    const std::string block = block_name(i);
    result[block + "norm.gain"] = zero_vector(shape.hidden);
    result[block + "norm.bias"] = zero_vector(shape.hidden);
    result[block + "up.weight"] = Matrix(wide, shape.hidden);
    result[block + "up.bias"] = zero_vector(wide);
    result[block + "down.weight"] = Matrix(shape.hidden, wide);
    result[block + "down.bias"] = zero_vector(shape.hidden);
  }
  result["final_norm.gain"] = zero_vector(shape.hidden);
  result["final_norm.bias"] = zero_vector(shape.hidden);
  result["head.weight"] = Matrix(shape.classes, shape.hidden);
  result["head.bias"] = zero_vector(shape.classes);
  return result;
}

OracleMlp::OracleMlp(const MlpShape& shape, const OptimizerSettings& optimizer,
                     NamedMatrices parameters)
    : shape_(shape), optimizer_(optimizer), parameters_(std::move(parameters)) {
  const NamedMatrices expected = zero_parameters(shape);
  expect(parameters_.size() == expected.size(), "OracleMlp: number of parameters");
  for (const auto& [name, zero] : expected) {
    expect(parameters_.contains(name), "OracleMlp: no parameter " + name);
    expect_same_shape(parameters_.at(name), zero, "OracleMlp: " + name);
    expect(parameters_.at(name).dims == zero.dims, "OracleMlp: dims of " + name);
  }
  first_ = expected;
  second_ = expected;
}

Matrix OracleMlp::logits(const Matrix& x) const {
  Matrix h = linear_forward(x, parameter("stem.weight"), parameter("stem.bias"));
  for (std::size_t i = 0; i < shape_.layers; ++i) {
    const std::string block = block_name(i);
    Matrix inner = layer_norm_forward(h, parameter(block + "norm.gain"),
                                      parameter(block + "norm.bias"), shape_.norm_eps);
    inner = linear_forward(inner, parameter(block + "up.weight"), parameter(block + "up.bias"));
    inner = gelu_forward(inner);
    inner = linear_forward(inner, parameter(block + "down.weight"), parameter(block + "down.bias"));
    h = residual(h, inner);
  }
  h = layer_norm_forward(h, parameter("final_norm.gain"), parameter("final_norm.bias"),
                         shape_.norm_eps);
  return linear_forward(h, parameter("head.weight"), parameter("head.bias"));
}

MlpGradients OracleMlp::loss_and_gradients(const Matrix& x, const std::vector<int>& labels,
                                           const std::vector<double>& weights,
                                           const std::vector<Matrix>& masks) const {
  expect(masks.empty() || masks.size() == shape_.layers, "OracleMlp: one mask a block, or none");

  // Forward.
  Matrix h = linear_forward(x, parameter("stem.weight"), parameter("stem.bias"));
  std::vector<BlockValues> saved;
  for (std::size_t i = 0; i < shape_.layers; ++i) {
    const std::string block = block_name(i);
    BlockValues values;
    values.x = h;
    values.normalized = layer_norm_forward(h, parameter(block + "norm.gain"),
                                           parameter(block + "norm.bias"), shape_.norm_eps);
    values.up = linear_forward(values.normalized, parameter(block + "up.weight"),
                               parameter(block + "up.bias"));
    values.activated = gelu_forward(values.up);
    const Matrix down = linear_forward(values.activated, parameter(block + "down.weight"),
                                       parameter(block + "down.bias"));
    h = residual(h, dropout(down, mask_of(masks, i), shape_.dropout));
    saved.push_back(std::move(values));
  }
  const Matrix normalized = layer_norm_forward(h, parameter("final_norm.gain"),
                                               parameter("final_norm.bias"), shape_.norm_eps);
  const Matrix logits =
      linear_forward(normalized, parameter("head.weight"), parameter("head.bias"));
  const CrossEntropy entropy = softmax_cross_entropy(logits, labels, weights);

  // Backward. `dh` is the gradient of the residual stream.
  MlpGradients result{entropy.loss, entropy.row_losses, {}};
  NamedMatrices& gradients = result.gradients;
  const auto keep_linear = [&](const std::string& name, LinearGradients&& g) {
    gradients[name + ".weight"] = std::move(g.dw);
    gradients[name + ".bias"] = std::move(g.db);
    return std::move(g.dx);
  };
  const auto keep_norm = [&](const std::string& name, LayerNormGradients&& g) {
    gradients[name + ".gain"] = std::move(g.dgain);
    gradients[name + ".bias"] = std::move(g.dbias);
    return std::move(g.dx);
  };

  const Matrix dnormalized =
      keep_linear("head", linear_backward(normalized, parameter("head.weight"), entropy.dlogits));
  Matrix dh = keep_norm("final_norm", layer_norm_backward(h, parameter("final_norm.gain"),
                                                          dnormalized, shape_.norm_eps));
  for (std::size_t i = shape_.layers; i-- > 0;) {
    const std::string block = block_name(i);
    const BlockValues& values = saved[i];
    const Matrix ddown = dropout(dh, mask_of(masks, i), shape_.dropout);
    const Matrix dactivated = keep_linear(
        block + "down", linear_backward(values.activated, parameter(block + "down.weight"), ddown));
    const Matrix dup = gelu_backward(values.up, dactivated);
    const Matrix dnorm = keep_linear(
        block + "up", linear_backward(values.normalized, parameter(block + "up.weight"), dup));
    const Matrix dx = keep_norm(
        block + "norm",
        layer_norm_backward(values.x, parameter(block + "norm.gain"), dnorm, shape_.norm_eps));
    dh = residual(dh, dx);
  }
  keep_linear("stem", linear_backward(x, parameter("stem.weight"), dh));
  return result;
}

double OracleMlp::lr_at(std::int64_t step) const {
  return optimizer_.schedule == ScheduleKind::constant
             ? constant_schedule(optimizer_.lr)
             : cosine_schedule(optimizer_.lr, step, optimizer_.warmup_steps, optimizer_.total_steps,
                               optimizer_.final_fraction);
}

MlpStep OracleMlp::train_step(const Matrix& x, const std::vector<int>& labels,
                              const std::vector<double>& weights,
                              const std::vector<Matrix>& masks) {
  MlpGradients pass = loss_and_gradients(x, labels, weights, masks);
  MlpStep step;
  step.loss = pass.loss;
  step.gradients = std::move(pass.gradients);
  step.gradient_norm = global_norm(step.gradients);
  step.clip_factor = clip_factor(step.gradient_norm, optimizer_.clip_norm);
  step.lr = lr_at(steps_done_);
  ++steps_done_;
  for (auto& [name, p] : parameters_) {
    Matrix g = step.gradients.at(name);
    for (double& value : g.values) value *= step.clip_factor;
    const double decay = decay_of(p, optimizer_.weight_decay);
    if (optimizer_.kind == OptimizerKind::sgd) {
      sgd_update(p, first_.at(name), g, step.lr, optimizer_.momentum, decay);
    } else {
      adamw_update(p, first_.at(name), second_.at(name), g, steps_done_, step.lr, decay,
                   optimizer_.adamw);
    }
  }
  return step;
}

}  // namespace weft::oracle
