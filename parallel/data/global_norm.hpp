// The norm of the whole gradient, the same bits on every layout (EXACT 3.18): squares in f64, in
// 16-accumulator form inside a norm block (up to 1024 consecutive elements of one logical shard of
// one parameter), then trees over blocks, over shards, over parameters.
#pragma once

#include <vector>

#include "core/context.hpp"
#include "core/parameter.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

class GlobalNorm {
 public:
  // After parameters.allocate().
  GlobalNorm(Context& context, const ParameterSet& parameters);

  // Collective over tp. The square root of the sum of squares of the bound gradients; what several
  // tp ranks hold counts once. Uses the gradients of the whole step.
  double of_gradients(Context& context, const ParameterSet& parameters, Communicator& tp);

 private:
  struct Block {
    index_t offset;  // in the flat block
    index_t length;
  };

  // The tree over each owned shard's blocks: parameters in order, owned shards in order; of
  // replicated parameters only where `with_replicated`.
  std::vector<double> shard_sums(const ParameterSet& parameters, const std::vector<double>& blocks,
                                 bool with_replicated) const;

  std::vector<Block> blocks_;
  Tensor device_blocks_;  // i64 [num_blocks, 2]
};

}  // namespace weft
