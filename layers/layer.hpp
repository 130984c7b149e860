// What a layer is. A layer holds its parameters' names and shapes and nothing of a microbatch: what
// backward needs from forward goes into `Saved`, one per microbatch under way.
//
// Shape suffixes in layers/:  t rows of the microbatch (samples x tokens), h hidden features,
// k input features of a matrix, n output features, c classes; `piece` marks a dense block per owned
// logical shard (core/shard_spec.hpp).
#pragma once

#include <functional>
#include <vector>

#include "core/context.hpp"
#include "core/kernels/gemm.hpp"
#include "core/parameter.hpp"
#include "core/shard_spec.hpp"
#include "core/tensor.hpp"

namespace weft {

// Which rows a pass works on, all by global index.
struct Pass {
  index_t step = 0;           // 0-based
  index_t first_sample = 0;   // position of the microbatch's first sample in the global batch
  index_t num_rows = 0;       // samples x tokens
  bool training = true;       // false: no dropout
  bool first_of_lane = true;  // the lane's first microbatch: gradients begin, else they go on
};

// A [rows, features] tensor, whole on each tp rank or cut in pieces by features.
struct Activation {
  ShardSpec spec;
  Tensor data;

  index_t num_rows() const { return spec.global()[0]; }
  index_t num_features() const { return spec.global()[1]; }
  float* piece(index_t shard) const { return data.data() + spec.offset(shard); }
};

// What one layer keeps of one microbatch between forward and backward_weight.
struct Saved {
  std::vector<Activation> kept;
  std::vector<Saved> inner;  // of the layers inside

  void clear() {
    kept.clear();
    inner.clear();
  }
};

// Arithmetic and memory of one microbatch on this rank.
struct Cost {
  double flops = 0.0;       // of forward; backward_input and backward_weight take as many each
  index_t saved_bytes = 0;  // held in Saved
  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    saved_bytes += other.saved_bytes;
    return *this;
  }
};

// Called by a layer inside backward_weight once the gradient of a parameter's piece is complete for
// this microbatch, while it is still in cache. Afterwards its memory may serve another parameter.
// Not for parameters that are summed by token blocks: those are complete when the lane is.
using GradientReady = std::function<void(const Parameter& parameter, index_t shard)>;

class Layer {
 public:
  virtual ~Layer() = default;

  // Collective over tp where the layer crosses that axis, as are the two below.
  virtual Activation forward(Context& context, const Activation& x, Saved& saved,
                             const Pass& pass) = 0;
  // The gradient of x from that of y. Keeps in `saved` what backward_weight needs.
  virtual Activation backward_input(Context& context, const Activation& dy, Saved& saved,
                                    const Pass& pass) = 0;
  // Adds to the parameters' gradients (begins them where pass.first_of_lane) and says which are
  // ready. After backward_input.
  virtual void backward_weight(Context& context, Saved& saved, const Pass& pass,
                               const GradientReady& ready) = 0;

  virtual std::vector<Parameter*> parameters() { return {}; }
  // `num_rows` rows a microbatch. Local.
  virtual Cost cost(index_t num_rows) const = 0;
  // The matrix products of a microbatch on this rank, shapes only: for the start-up probe.
  virtual std::vector<kernels::GemmCall> products(index_t) const { return {}; }
};

}  // namespace weft
