// The vision transformer of vit.hpp, composed of the single functions beside it.
#include "tests/oracle/vit.hpp"

#include <utility>

#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/named_layers.hpp"
#include "tests/oracle/transformer_block.hpp"

namespace weft::oracle {
namespace {

BlocksShape blocks_of(const VitShape& shape) {
  return {shape.layers,    shape.tokens(), shape.hidden,  shape.heads,
          shape.mlp_ratio, shape.dropout,  shape.norm_eps};
}

// Where element `pixel` of token `token` lies in an image's row.
std::size_t place_of(const VitShape& shape, std::size_t token, std::size_t pixel) {
  const std::size_t per_side = shape.side / shape.patch, area = shape.patch * shape.patch;
  const std::size_t channel = pixel / area;
  const std::size_t y = token / per_side * shape.patch + pixel % area / shape.patch;
  const std::size_t x = token % per_side * shape.patch + pixel % shape.patch;
  return (channel * shape.side + y) * shape.side + x;
}

}  // namespace

Matrix patches_of(const Matrix& x, const VitShape& shape) {
  expect(shape.patch > 0 && shape.side % shape.patch == 0, "patches_of: patch divides the side");
  expect(x.cols == shape.inputs(), "patches_of: pixels");
  Matrix result(x.rows * shape.tokens(), shape.patch_size());
  for (std::size_t sample = 0; sample < x.rows; ++sample) {
    for (std::size_t token = 0; token < shape.tokens(); ++token) {
      for (std::size_t pixel = 0; pixel < shape.patch_size(); ++pixel) {
        result(sample * shape.tokens() + token, pixel) = x(sample, place_of(shape, token, pixel));
      }
    }
  }
  return result;
}

Matrix mean_pool(const Matrix& x, std::size_t tokens) {
  expect(tokens > 0 && x.rows % tokens == 0, "mean_pool: whole samples");
  Matrix y(x.rows / tokens, x.cols);
  for (std::size_t row = 0; row < x.rows; ++row) {
    for (std::size_t k = 0; k < x.cols; ++k) {
      y(row / tokens, k) += x(row, k) / static_cast<double>(tokens);
    }
  }
  return y;
}

Matrix mean_pool_backward(const Matrix& dy, std::size_t tokens) {
  Matrix dx(dy.rows * tokens, dy.cols);
  for (std::size_t row = 0; row < dx.rows; ++row) {
    for (std::size_t k = 0; k < dx.cols; ++k) {
      dx(row, k) = dy(row / tokens, k) / static_cast<double>(tokens);
    }
  }
  return dx;
}

Matrix add_position(const Matrix& x, const Matrix& position) {
  expect(x.cols == position.cols && x.rows % position.rows == 0, "add_position: shapes");
  Matrix y = x;
  for (std::size_t row = 0; row < x.rows; ++row) {
    for (std::size_t k = 0; k < x.cols; ++k) y(row, k) += position(row % position.rows, k);
  }
  return y;
}

Matrix position_gradient(const Matrix& dy, std::size_t tokens) {
  Matrix gradient(tokens, dy.cols);
  for (std::size_t row = 0; row < dy.rows; ++row) {
    for (std::size_t k = 0; k < dy.cols; ++k) gradient(row % tokens, k) += dy(row, k);
  }
  return gradient;
}

NamedMatrices zero_parameters(const VitShape& shape) {
  const std::size_t h = shape.hidden;
  NamedMatrices result;
  add_linear(result, "patch", h, shape.patch_size());
  result["position"] = Matrix(shape.tokens(), h);
  add_blocks(result, blocks_of(shape));
  add_norm(result, "final_norm", h);
  add_linear(result, "head", shape.classes, h);
  return result;
}

OracleVit::OracleVit(const VitShape& shape, const OptimizerSettings& optimizer,
                     NamedMatrices parameters)
    : shape_(shape),
      training_("OracleVit", optimizer, std::move(parameters), zero_parameters(shape),
                {"position"}) {}

Matrix OracleVit::logits(const Matrix& x) const {
  const NamedMatrices& p = parameters();
  Matrix h = add_position(named_linear(p, "patch", patches_of(x, shape_)), p.at("position"));
  h = Blocks(blocks_of(shape_), {}).forward(p, h, {});
  h = named_norm(p, "final_norm", h, shape_.norm_eps);
  return named_linear(p, "head", mean_pool(h, shape_.tokens()));
}

BatchGradients OracleVit::loss_and_gradients(const Matrix& x, const std::vector<int>& labels,
                                             const std::vector<double>& weights,
                                             const std::vector<Matrix>& masks) const {
  expect(masks.empty() || masks.size() == shape_.num_dropouts(),
         "OracleVit: one mask after the position and two a block, or none");
  const NamedMatrices& p = parameters();
  const std::size_t tokens = shape_.tokens();

  // Forward.
  const Matrix patches = patches_of(x, shape_);
  const Matrix embedded = numbered_dropout(
      add_position(named_linear(p, "patch", patches), p.at("position")), masks, 0, shape_.dropout);
  Blocks blocks(blocks_of(shape_), {});
  const Matrix h = blocks.forward(p, embedded, masks);
  const Matrix pooled = mean_pool(named_norm(p, "final_norm", h, shape_.norm_eps), tokens);
  const CrossEntropy entropy =
      softmax_cross_entropy(named_linear(p, "head", pooled), labels, weights);

  // Backward.
  BatchGradients result{entropy.loss, entropy.row_losses, {}};
  NamedMatrices& gradients = result.gradients;
  const Matrix dpooled = named_linear_backward(p, "head", pooled, entropy.dlogits, gradients);
  Matrix dh = named_norm_backward(p, "final_norm", h, mean_pool_backward(dpooled, tokens),
                                  shape_.norm_eps, gradients);
  dh = numbered_dropout(blocks.backward(p, dh, gradients), masks, 0, shape_.dropout);
  gradients["position"] = position_gradient(dh, tokens);
  named_linear_backward(p, "patch", patches, dh, gradients);
  return result;
}

TrainStep OracleVit::train_step(const Matrix& x, const std::vector<int>& labels,
                                const std::vector<double>& weights,
                                const std::vector<Matrix>& masks) {
  return training_.update(loss_and_gradients(x, labels, weights, masks));
}

}  // namespace weft::oracle
