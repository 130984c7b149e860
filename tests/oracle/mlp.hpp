// The whole residual MLP classifier with its optimizer, on one process, in double.
// The judge of a training run on any layout; it knows no shards, lanes, stages or microbatches.
//
//   h = stem(x)                                                     [T, hidden]
//   h = h + dropout(down(gelu(up(layer_norm(h)))))   `layers` times
//   logits = head(layer_norm(h))                                    [T, classes]
#pragma once

#include <cstdint>

#include "tests/oracle/matrix.hpp"
#include "tests/oracle/training.hpp"

namespace weft::oracle {

struct MlpShape {
  std::size_t inputs = 3072;
  std::size_t hidden = 0;
  std::size_t layers = 0;
  std::size_t mlp_ratio = 4;  // up is [mlp_ratio hidden, hidden]
  std::size_t classes = 10;
  double dropout = 0.0;
  double norm_eps = 1e-5;
};

// Every parameter of the model by name, all zero, with its shape:
// stem.{weight,bias}, block.<i>.norm.{gain,bias}, block.<i>.{up,down}.{weight,bias},
// final_norm.{gain,bias}, head.{weight,bias}.
NamedMatrices zero_parameters(const MlpShape& shape);

class OracleMlp {
 public:
  // `parameters` must have the names and shapes of zero_parameters(shape); throws
  // std::invalid_argument.
  OracleMlp(const MlpShape& shape, const OptimizerSettings& optimizer, NamedMatrices parameters);

  // [T, classes], without dropout.
  Matrix logits(const Matrix& x) const;

  // x [T, inputs], the global batch in global order, padded rows included; one label and weight a
  // row (mean_weights); masks: one [T, hidden] of 0 and 1 a block, or none at all for no dropout.
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
  MlpShape shape_;
  Training training_;
};

}  // namespace weft::oracle
