// The whole residual MLP classifier with its optimizer, on one process, in double.
// The judge of a training run on any layout; it knows no shards, lanes, stages or microbatches.
//
//   h = stem(x)                                                     [T, hidden]
//   h = h + dropout(down(gelu(up(layer_norm(h)))))   `layers` times
//   logits = head(layer_norm(h))                                    [T, classes]
#pragma once

#include <cstdint>

#include "tests/oracle/matrix.hpp"
#include "tests/oracle/optimizer.hpp"

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

enum class OptimizerKind { sgd, adamw };
enum class ScheduleKind { constant, cosine };

struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::adamw;
  double lr = 0.0;
  double weight_decay = 0.0;  // on tensors of two dims only
  double clip_norm = 0.0;     // 0: off
  double momentum = 0.0;
  AdamWSettings adamw;
  ScheduleKind schedule = ScheduleKind::constant;
  std::int64_t warmup_steps = 0;
  std::int64_t total_steps = 0;
  double final_fraction = 0.0;
};

struct MlpGradients {
  double loss = 0.0;
  std::vector<double> row_losses;  // -log p of each row, not weighted
  NamedMatrices gradients;         // not clipped
};

struct MlpStep {
  double loss = 0.0;
  NamedMatrices gradients;  // before clipping
  double gradient_norm = 0.0;
  double clip_factor = 1.0;
  double lr = 0.0;
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
  MlpGradients loss_and_gradients(const Matrix& x, const std::vector<int>& labels,
                                  const std::vector<double>& weights,
                                  const std::vector<Matrix>& masks) const;

  // The same, then one update of all parameters.
  MlpStep train_step(const Matrix& x, const std::vector<int>& labels,
                     const std::vector<double>& weights, const std::vector<Matrix>& masks);

  const NamedMatrices& parameters() const { return parameters_; }
  // SGD's velocity or AdamW's first moment; AdamW's second moment (zero with SGD).
  const NamedMatrices& first_moments() const { return first_; }
  const NamedMatrices& second_moments() const { return second_; }
  std::int64_t steps_done() const { return steps_done_; }
  // The learning rate of 0-based step `step`.
  double lr_at(std::int64_t step) const;

 private:
  const Matrix& parameter(const std::string& name) const { return parameters_.at(name); }

  MlpShape shape_;
  OptimizerSettings optimizer_;
  NamedMatrices parameters_;
  NamedMatrices first_;
  NamedMatrices second_;
  std::int64_t steps_done_ = 0;
};

}  // namespace weft::oracle
