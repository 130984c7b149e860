// The whole vision transformer with its optimizer, on one process, in double (Dosovitskiy et al.,
// "An image is worth 16x16 words", 2021, equations 1 to 4, with mean pooling in place of the class
// token). The judge of a training run on any layout; it knows no shards, lanes, stages or
// microbatches.
//
//   h = patch(patches(x)) + position                       [T, hidden], T = samples x tokens
//   h = dropout(h)
//   h = h + dropout(proj(attention(qkv(norm1(h)))))        `layers` times, and after each
//   h = h + dropout(down(gelu(up(norm2(h)))))
//   logits = head(mean over tokens of final_norm(h))       [samples, classes]
#pragma once

#include <cstdint>

#include "tests/oracle/matrix.hpp"
#include "tests/oracle/training.hpp"

namespace weft::oracle {

struct VitShape {
  std::size_t channels = 3;
  std::size_t side = 32;  // of a square image
  std::size_t patch = 4;  // side of a patch; divides the image's
  std::size_t hidden = 0;
  std::size_t layers = 0;
  std::size_t heads = 0;
  std::size_t mlp_ratio = 4;
  std::size_t classes = 10;
  double dropout = 0.0;
  double norm_eps = 1e-5;

  std::size_t tokens() const { return (side / patch) * (side / patch); }
  std::size_t patch_size() const { return channels * patch * patch; }
  std::size_t inputs() const { return channels * side * side; }
  // One after the position embedding, two a block.
  std::size_t num_dropouts() const { return 1 + 2 * layers; }
};

// Images as rows of planes (channel, y, x) -> [samples x tokens, channels x patch x patch]: tokens
// row by row over the image, pixels inside a token as (channel, y, x).
Matrix patches_of(const Matrix& x, const VitShape& shape);

// y[sample] = mean over its tokens; and its gradient, dy / tokens for each of them.
Matrix mean_pool(const Matrix& x, std::size_t tokens);
Matrix mean_pool_backward(const Matrix& dy, std::size_t tokens);

// x[row] + position[row mod tokens]; position's gradient is the sum of dy over samples.
Matrix add_position(const Matrix& x, const Matrix& position);
Matrix position_gradient(const Matrix& dy, std::size_t tokens);

// Every parameter of the model by name, all zero, with its shape: patch.{weight,bias}, position,
// block.<i>.{norm1,norm2}.{gain,bias}, block.<i>.{qkv,proj,up,down}.{weight,bias},
// final_norm.{gain,bias}, head.{weight,bias}.
NamedMatrices zero_parameters(const VitShape& shape);

class OracleVit {
 public:
  // `parameters` must have the names and shapes of zero_parameters(shape); throws
  // std::invalid_argument. `position` does not decay.
  OracleVit(const VitShape& shape, const OptimizerSettings& optimizer, NamedMatrices parameters);

  // [samples, classes], without dropout.
  Matrix logits(const Matrix& x) const;

  // x [samples, inputs], the global batch in global order, padded rows included; one label and
  // weight a sample (mean_weights); masks: num_dropouts() of [T, hidden], in the order of the flow
  // above, or none at all for no dropout.
  BatchGradients loss_and_gradients(const Matrix& x, const std::vector<int>& labels,
                                    const std::vector<double>& weights,
                                    const std::vector<Matrix>& masks) const;

  // The same, then one update of all parameters.
  TrainStep train_step(const Matrix& x, const std::vector<int>& labels,
                       const std::vector<double>& weights, const std::vector<Matrix>& masks);

  const NamedMatrices& parameters() const { return training_.parameters(); }
  const NamedMatrices& first_moments() const { return training_.first_moments(); }
  const NamedMatrices& second_moments() const { return training_.second_moments(); }
  std::int64_t steps_done() const { return training_.steps_done(); }
  double lr_at(std::int64_t step) const { return training_.lr_at(step); }

 private:
  VitShape shape_;
  Training training_;
};

}  // namespace weft::oracle
