// The layers of one pipeline stage in order; the last stage's end in the loss. What the trainer, or
// the pipeline's runner, runs on a microbatch. A run without pipeline is one stage, first and last.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "layers/cross_entropy.hpp"
#include "layers/layer.hpp"

namespace weft {

// Which part of a model a stage is.
struct StagePart {
  Range blocks;          // of the model's blocks
  bool is_first = true;  // has what lies before the blocks: takes samples
  bool is_last = true;   // has what lies behind the blocks: ends in the loss
};

struct NamedLayer {
  std::string name;  // as messages call it: "block.0.attention"
  std::unique_ptr<Layer> layer;
};

// Sees what a stage's layers make, as soon as they have made it. `layer` counts from the stage's
// first one.
class LayerWatch {
 public:
  virtual ~LayerWatch() = default;
  virtual void after_forward(index_t layer, const std::string& name, const Activation& y) = 0;
  // The gradient of the layer's input; the model's first layer has none.
  virtual void after_backward_input(index_t layer, const std::string& name,
                                    const Activation& dx) = 0;
  virtual void after_backward_weight(index_t /*layer*/, const std::string& /*name*/) {}
  // A pass of the layers begins, forward or backward.
  virtual void before_layers() {}
};

// A microbatch in device memory. A label row is a sample, or, where a model has a loss for each
// token, a token of a sample, sample by sample.
struct Microbatch {
  // The first stage's: [samples, features] f32, whole, or token ids [samples, tokens] i32.
  Tensor x;
  // Every stage's: [samples] i32, tokens that are not padding, at least 1 of a real sample. Empty
  // for models without masks.
  Tensor lengths = {};
  // Every stage's: of a sample, where that is fewer than the model takes at most; 0: as many.
  index_t tokens = 0;
  Tensor labels;   // [label rows] i32: the last stage's, as are those below
  Tensor weights;  // [label rows] f32: 0 padding, else real: 1, or its class' weight
  float scale =
      0.0f;  // 1 / (labels of real samples in the global batch), what dlogits are multiplied with
};

class StageModel {
 public:
  // What crosses from stage to stage: the tp rank's rows of [samples x tokens, hidden].
  struct Boundary {
    index_t tokens_per_sample = 1;  // at most
    index_t hidden = 0;
  };

  // `loss`: the last stage's. `tp` must outlive the model.
  StageModel(TensorParallel& tp, bool is_first, const Boundary& boundary,
             std::vector<NamedLayer> layers, std::optional<CrossEntropy> loss)
      : tp_(tp),
        is_first_(is_first),
        boundary_(boundary),
        layers_(std::move(layers)),
        loss_(std::move(loss)) {}

  bool is_first() const { return is_first_; }
  bool is_last() const { return loss_.has_value(); }
  // Of the tensors between stages, for a microbatch of `num_samples`. `tokens`: Microbatch::tokens,
  // as below.
  Shape boundary_shape(index_t num_samples, index_t tokens = 0) const;

  // What a microbatch under way holds between forward and backward.
  struct State {
    std::vector<Saved> saved;
    Activation gradient;  // of the logits; the last stage's
    Tensor lengths;       // the microbatch's, as are the tokens
    index_t tokens = 0;
  };

  struct Output {
    Tensor boundary;                      // for the next stage; the last has none
    LossSums sums;                        // the last stage's, as those below
    std::vector<Prediction> predictions;  // of the real label rows, where `state` is null
  };

  // `pass.lengths` is set here. Collective over tp. `input`: the previous stage's output; the first
  // stage takes batch.x. Where `state` is null nothing is kept: evaluation.
  Output forward(Context& context, const Microbatch& batch, Tensor input, State* state,
                 const Pass& pass);

  // Collective over tp. `output_gradient`: of the boundary, from the next stage; the last has its
  // own. Returns the gradient of `input`; the first stage has none. `ready` hears of each piece of
  // each parameter, last layer first.
  Tensor backward(Context& context, State& state, Tensor output_gradient, const Pass& pass,
                  const GradientReady& ready);

  std::vector<kernels::GemmCall> products(index_t num_samples, index_t tokens = 0) const;

  index_t num_layers() const { return static_cast<index_t>(layers_.size()); }
  // From the next pass on; null: nobody. It must outlive those passes.
  void set_watch(LayerWatch* watch) { watch_ = watch; }

 private:
  index_t tokens_of(index_t tokens) const {
    return tokens > 0 ? tokens : boundary_.tokens_per_sample;
  }
  Activation boundary_activation(Tensor data, index_t num_samples, index_t tokens) const;

  TensorParallel& tp_;
  bool is_first_;
  Boundary boundary_;
  std::vector<NamedLayer> layers_;
  std::optional<CrossEntropy> loss_;
  LayerWatch* watch_ = nullptr;
};

}  // namespace weft
