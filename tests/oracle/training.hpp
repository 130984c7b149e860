// What training adds to a model: its parameters by name, their moments, and one update. Shared by
// the models of this folder, which know their own forward and backward pass alone.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/oracle/matrix.hpp"
#include "tests/oracle/optimizer.hpp"

namespace weft::oracle {

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

// Of one global batch.
struct BatchGradients {
  double loss = 0.0;
  std::vector<double> row_losses;  // -log p of each sample, not weighted
  NamedMatrices gradients;         // not clipped
};

struct TrainStep {
  double loss = 0.0;
  NamedMatrices gradients;  // before clipping
  double gradient_norm = 0.0;
  double clip_factor = 1.0;
  double lr = 0.0;
};

class Training {
 public:
  // `parameters` must have the names, shapes and dims of `zeros`; throws std::invalid_argument that
  // begins with `model`. `undecayed`: tensors of two dims that do not decay all the same.
  Training(const std::string& model, const OptimizerSettings& settings, NamedMatrices parameters,
           const NamedMatrices& zeros, std::set<std::string> undecayed = {});

  // Clips and updates all parameters.
  TrainStep update(BatchGradients batch);

  const NamedMatrices& parameters() const { return parameters_; }
  // SGD's velocity or AdamW's first moment; AdamW's second moment (zero with SGD).
  const NamedMatrices& first_moments() const { return first_; }
  const NamedMatrices& second_moments() const { return second_; }
  std::int64_t steps_done() const { return steps_done_; }
  // The learning rate of 0-based step `step`.
  double lr_at(std::int64_t step) const;

 private:
  OptimizerSettings settings_;
  NamedMatrices parameters_;
  NamedMatrices first_;
  NamedMatrices second_;
  std::set<std::string> undecayed_;
  std::int64_t steps_done_ = 0;
};

}  // namespace weft::oracle
