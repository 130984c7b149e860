// Softmax cross entropy over classes that are cut over tp (EXACT 3.12, 3.13). Per row and piece
// only (max, sum of exp, logit of the target) cross the axis: one small all-gather, then every rank
// merges the pieces by the tree and ends with the same bits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layers/layer.hpp"
#include "parallel/tensor/tensor_parallel.hpp"

namespace weft {

// What one microbatch adds to the numbers of a step, summed over rows in order.
struct LossSums {
  // Sum over real rows of weight x -ln p(target); not yet divided.
  double loss = 0.0;
  // Real rows whose largest logit is the target's; ties to the lower class.
  std::int64_t correct = 0;
  // Real rows.
  std::int64_t rows = 0;

  LossSums& operator+=(const LossSums& other) {
    loss += other.loss;
    correct += other.correct;
    rows += other.rows;
    return *this;
  }
};

// What the model says of one real row.
struct Prediction {
  std::int32_t label;
  std::int32_t predicted;  // class of the largest logit; ties to the lower
  // Of two classes: logit of class 1 - logit of class 0, in f64, so that scores tie only where the
  // logits' differences do; 0 is a probability of one half. With more classes 0.
  double score;
  double loss = 0.0;  // weight x -ln p(label); an evaluation's weights are 1
};

class CrossEntropy {
 public:
  // `tp` must outlive it. Pieces are those of ColumnLinear with the same numbers.
  CrossEntropy(std::string name, TensorParallel& tp, index_t num_classes)
      : name_(std::move(name)), tp_(tp), num_classes_(num_classes) {}

  // Collective over tp. logits: [t, padded classes] in pieces. `labels` [t] i32 and `weights` [t]
  // f32 (0 padding; else positive and finite: 1, or a class' weight) in device memory. Where
  // `dlogits` is given, it gets (softmax - one hot) * weight * scale, `scale` being 1 / (the
  // labels of real samples in the global batch). Where `predictions` is
  // given, the real rows' are added to its end, in order.
  LossSums forward(Context& context, const Activation& logits, const Tensor& labels,
                   const Tensor& weights, float scale, Activation* dlogits,
                   std::vector<Prediction>* predictions = nullptr);

 private:
  std::string name_;
  TensorParallel& tp_;
  index_t num_classes_;
};

}  // namespace weft
