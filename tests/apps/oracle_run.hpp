// A training run of the trainer beside one of the double oracle: the oracle gets the trainer's
// initial weights, the same samples, and masks made from global indices alone.
#pragma once

#include <string>
#include <vector>

#include "tests/apps/training_run.hpp"

namespace weft::testing {

// What the oracle says of a plan, whose layout it does not look at.
struct OracleRun {
  struct Step {
    double loss = 0.0;
    double gradient_norm = 0.0;
    double learning_rate = 0.0;
    index_t num_real = 0;
  };
  std::vector<Step> steps;
  // Of the whole validation part in one piece, after the last step.
  double validation_loss = 0.0;
  ConfusionMatrix confusion;  // of images alone
};

// All steps of the plan, from `initial`. Of `left_out` the oracle does not hear: their entries are
// zeros.
OracleRun run_oracle(const Plan& plan, const TrainingData& data, const NamedFloats& initial,
                     const std::vector<index_t>& left_out = {});

}  // namespace weft::testing
