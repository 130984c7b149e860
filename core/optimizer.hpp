// Optimizers: the update of the elements that a rank owns, from the gradient of the whole step.
// State is held for those elements alone, in the order of the flat blocks.
#pragma once

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/context.hpp"
#include "core/flat_ranges.hpp"
#include "core/parameter.hpp"

namespace weft {

// The scalars of one update, computed in f64 from the integer step alike on every rank
// (EXACT 3.19).
struct UpdateScalars {
  index_t step = 0;  // updates made before this one: steps that are left out do not count
  double learning_rate = 0;
  double clip_factor = 1;  // multiplied into the gradient, always
};

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
};

struct SgdOptions {
  double momentum = 0.0;
  double weight_decay = 0.0;
};

class Optimizer {
 public:
  struct State {
    std::string_view name;  // "exp_avg"
    // owned().num_elements(): the state of a flat range is where owned().for_each_in() says.
    float* data;
  };

  virtual ~Optimizer() = default;
  // Local. Uses the gradients bound in `parameters`; what is not owned is left alone.
  virtual void update(Context& context, const ParameterSet& parameters,
                      const UpdateScalars& scalars) = 0;
  virtual std::vector<State> states() const = 0;
  // Ranges of the flat blocks.
  const FlatRanges& owned() const { return owned_; }

 protected:
  explicit Optimizer(FlatRanges owned) : owned_(std::move(owned)) {}

 private:
  FlatRanges owned_;
};

// All elements of `parameters`: what a rank owns where nothing is divided.
FlatRanges everything_of(const ParameterSet& parameters);

// `owned`: what this rank updates; its state is 0 at first.

// AdamW (Loshchilov and Hutter 2019, algorithm 2, with the decay scaled by the learning rate):
//   g = clip dL/dp;  p *= 1 - lr wd (matrices);  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
//   p -= lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps),  t = step + 1
std::unique_ptr<Optimizer> make_adamw(Context& context, const AdamWOptions& options,
                                      FlatRanges owned);

// SGD with momentum: g = clip dL/dp + wd p (matrices);  v = mu v + g;  p -= lr v
std::unique_ptr<Optimizer> make_sgd(Context& context, const SgdOptions& options, FlatRanges owned);

}  // namespace weft
