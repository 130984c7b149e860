// A rank's layers in order, ending in the loss: what the trainer runs on a microbatch.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "layers/cross_entropy.hpp"
#include "layers/layer.hpp"

namespace weft {

// A microbatch in device memory.
struct Microbatch {
  Tensor x;            // [t, features] f32, whole
  Tensor labels;       // [t] i32
  Tensor weights;      // [t] f32: 1 real, 0 padding
  float scale = 0.0f;  // 1 / (real samples of the global batch), what dlogits are multiplied with
};

class StageModel {
 public:
  // `tp` must outlive the model.
  StageModel(TensorParallel& tp, std::vector<std::unique_ptr<Layer>> layers, CrossEntropy loss,
             index_t input_features)
      : tp_(tp),
        layers_(std::move(layers)),
        loss_(std::move(loss)),
        input_features_(input_features) {}

  // What a microbatch under way holds between forward and backward.
  struct State {
    std::vector<Saved> saved;
    Activation gradient;  // of the logits
  };

  // Collective over tp. Where `state` is null nothing is kept: evaluation.
  LossSums forward(Context& context, const Microbatch& batch, State* state, const Pass& pass);

  // Collective over tp. `ready` hears of each piece of each parameter, last layer first.
  void backward(Context& context, State& state, const Pass& pass, const GradientReady& ready);

  Cost cost(index_t num_rows) const;
  std::vector<kernels::GemmCall> products(index_t num_rows) const;

 private:
  TensorParallel& tp_;
  std::vector<std::unique_ptr<Layer>> layers_;
  CrossEntropy loss_;
  index_t input_features_;
};

}  // namespace weft
