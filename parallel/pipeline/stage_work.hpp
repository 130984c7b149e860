// What a pipeline stage computes, as its runner sees it: tensors in, tensors out. Knows no
// messages; the model's layers, a loss and gradients are behind it.
#pragma once

#include "core/range.hpp"
#include "core/tensor.hpp"

namespace weft::pipeline {

class StageWork {
 public:
  virtual ~StageWork() = default;

  // Local. `input`: the previous stage's activation, the stage's own from now on; empty on the
  // first stage. Returns the activation for the next stage; empty on the last one. What is returned
  // may still be read by its message later, so nobody writes to it any more.
  virtual Tensor forward(index_t microbatch, Tensor input) = 0;

  // Local. `output_gradient`: of what forward returned; empty on the last stage. Returns the
  // gradient of forward's input, under the same rule; empty on the first stage.
  virtual Tensor backward(index_t microbatch, Tensor output_gradient) = 0;
};

}  // namespace weft::pipeline
