// What a layer is. A layer holds its parameters' names and shapes and nothing of a microbatch: what
// backward needs from forward goes into `Saved`, one per microbatch under way.
//
// Shape suffixes in layers/:  t rows of the microbatch (samples x tokens, sample by sample), r
// those of them that this rank holds, h hidden features, k input features of a matrix, n output
// features, c classes; `piece` marks a dense block per owned logical shard (core/shard_spec.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/context.hpp"
#include "core/kernels/gemm.hpp"
#include "core/parameter.hpp"
#include "core/shard_spec.hpp"
#include "core/tensor.hpp"
#include "parallel/tensor/rows.hpp"
#include "parallel/tensor/tensor_parallel.hpp"

namespace weft {

// Which samples a pass works on, all by global index. How many tokens a sample has is not said
// here: it is rows / num_samples, and may differ from step to step.
struct Pass {
  index_t step = 0;           // 0-based
  index_t first_sample = 0;   // position of the microbatch's first sample in the global batch
  index_t num_samples = 0;    // of the microbatch
  bool training = true;       // false: no dropout
  bool first_of_lane = true;  // the lane's first microbatch: gradients begin, else they go on
  // [num_samples] in device memory: tokens of each sample that are not padding, for the layers that
  // mask; StageModel takes them from the microbatch. Null in models without such layers.
  const std::int32_t* lengths = nullptr;
};

// A [t, features] tensor: the rows this rank holds with whole features, or all rows with features
// cut in pieces.
struct Activation {
  ShardSpec spec;  // of the whole [t, features]
  Rows rows;
  Tensor data;  // f32 [rows.mine, features], or the owned pieces; i32 where rows are token ids

  index_t num_rows() const { return rows.total; }
  index_t num_features() const { return spec.global()[1]; }
  float* piece(index_t shard) const { return data.data() + spec.offset(shard); }
  // Another tensor of the same layout, contents undefined.
  Activation like(Context& context) const;

  // Whole features of `rows`; contents undefined.
  static Activation whole(Context& context, const Rows& rows, index_t num_features);
  // All of `num_rows` rows, features cut as tp's pieces say; contents undefined.
  static Activation cut(Context& context, const TensorParallel& tp, index_t num_rows,
                        index_t num_features);
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

  // The matrix products of a microbatch on this rank, shapes and beta only: for the start-up probe.
  // `num_rows`: of x, all ranks' together; `tokens`: of a sample. Local, as is the one below.
  virtual std::vector<kernels::GemmCall> products(index_t /*num_rows*/, index_t /*tokens*/) const {
    return {};
  }
  // Rows of y where x has `num_rows`.
  virtual index_t rows_after(index_t num_rows, index_t /*tokens*/) const { return num_rows; }
};

}  // namespace weft
