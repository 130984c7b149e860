// The residual MLP classifier of mlp.hpp, composed of the single functions beside it.
// Obvious, not fast: each block's intermediate values are kept and walked back in reverse.
#include "tests/oracle/mlp.hpp"

#include <utility>

#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/dropout.hpp"
#include "tests/oracle/named_layers.hpp"

namespace weft::oracle {
namespace {

FeedForward feed_forward_of(const MlpShape& shape, std::size_t block) {
  return {block_name(block), block_name(block) + "norm", shape.norm_eps, {}, {}, {}, {}};
}

const Matrix& mask_of(const std::vector<Matrix>& masks, std::size_t block) {
  static const Matrix keep_all;
  return masks.empty() ? keep_all : masks[block];
}

}  // namespace

NamedMatrices zero_parameters(const MlpShape& shape) {
  const std::size_t wide = shape.mlp_ratio * shape.hidden;
  NamedMatrices result;
  add_linear(result, "stem", shape.hidden, shape.inputs);
  for (std::size_t i = 0; i < shape.layers; ++i) {
    add_norm(result, block_name(i) + "norm", shape.hidden);
    add_linear(result, block_name(i) + "up", wide, shape.hidden);
    add_linear(result, block_name(i) + "down", shape.hidden, wide);
  }
  add_norm(result, "final_norm", shape.hidden);
  add_linear(result, "head", shape.classes, shape.hidden);
  return result;
}

OracleMlp::OracleMlp(const MlpShape& shape, const OptimizerSettings& optimizer,
                     NamedMatrices parameters)
    : shape_(shape),
      training_("OracleMlp", optimizer, std::move(parameters), zero_parameters(shape)) {}

Matrix OracleMlp::logits(const Matrix& x) const {
  const NamedMatrices& p = parameters();
  Matrix h = named_linear(p, "stem", x);
  for (std::size_t i = 0; i < shape_.layers; ++i) {
    h = residual(h, feed_forward_of(shape_, i).forward(p, h));
  }
  return named_linear(p, "head", named_norm(p, "final_norm", h, shape_.norm_eps));
}

BatchGradients OracleMlp::loss_and_gradients(const Matrix& x, const std::vector<int>& labels,
                                             const std::vector<double>& weights,
                                             const std::vector<Matrix>& masks) const {
  expect(masks.empty() || masks.size() == shape_.layers, "OracleMlp: one mask a block, or none");
  const NamedMatrices& p = parameters();

  // Forward.
  Matrix h = named_linear(p, "stem", x);
  std::vector<FeedForward> blocks;
  for (std::size_t i = 0; i < shape_.layers; ++i) {
    blocks.push_back(feed_forward_of(shape_, i));
    h = residual(h, dropout(blocks[i].forward(p, h), mask_of(masks, i), shape_.dropout));
  }
  const Matrix normalized = named_norm(p, "final_norm", h, shape_.norm_eps);
  const CrossEntropy entropy =
      softmax_cross_entropy(named_linear(p, "head", normalized), labels, weights);

  // Backward. `dh` is the gradient of the residual stream.
  BatchGradients result{entropy.loss, entropy.row_losses, {}};
  NamedMatrices& gradients = result.gradients;
  const Matrix dnormalized =
      named_linear_backward(p, "head", normalized, entropy.dlogits, gradients);
  Matrix dh = named_norm_backward(p, "final_norm", h, dnormalized, shape_.norm_eps, gradients);
  for (std::size_t i = shape_.layers; i-- > 0;) {
    const Matrix ddown = dropout(dh, mask_of(masks, i), shape_.dropout);
    dh = residual(dh, blocks[i].backward(p, ddown, gradients));
  }
  named_linear_backward(p, "stem", x, dh, gradients);
  return result;
}

TrainStep OracleMlp::train_step(const Matrix& x, const std::vector<int>& labels,
                                const std::vector<double>& weights,
                                const std::vector<Matrix>& masks) {
  return training_.update(loss_and_gradients(x, labels, weights, masks));
}

}  // namespace weft::oracle
