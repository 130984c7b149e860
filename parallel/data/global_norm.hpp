// The norm of the whole gradient, the same bits on every layout (EXACT 3.18): squares in f64, in
// 16-accumulator form inside a norm block (up to 1024 consecutive elements of one logical shard of
// one parameter), then trees over blocks, over shards, over the parameters of all stages.
//
// A rank squares the blocks that it owns and folds neighbours to nodes of the tree over the shard's
// blocks. Each axis then is one exchange of doubles: dp fits nodes to shards, tp shards to
// parameters, pp parameters to the model; everyone finishes alone.
#pragma once

#include <string>
#include <vector>

#include "core/context.hpp"
#include "core/flat_ranges.hpp"
#include "core/parameter.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

class GlobalNorm {
 public:
  // After parameters.allocate(). `shares`: what each dp rank owns, cut between norm blocks, or one
  // entry where each owns everything (GradSync::shares()).
  GlobalNorm(Context& context, const ParameterSet& parameters,
             const std::vector<FlatRanges>& shares, int dp_rank);

  // Collective over tp, dp and pp. The square root of the sum of squares of the bound gradients of
  // the whole step; what several ranks hold counts once. Stages count in pp order, their parameters
  // in the order of ParameterSet::add().
  double of_gradients(Context& context, const ParameterSet& parameters, Communicator& tp,
                      Communicator& dp, Communicator& pp);

 private:
  struct Block {
    index_t offset;  // in the flat block
    index_t length;
  };
  // Consecutive norm blocks of one shard that one dp rank owns.
  struct Run {
    Range blocks;
    std::size_t owner;  // index into shares
  };
  struct Shard {
    index_t num_blocks;
    std::vector<Run> runs;  // in index order, all blocks
  };

  void add_shard(Range flat, const std::vector<FlatRanges>& shares);
  // Nodes of this rank's runs, from its blocks' sums; shards in order, runs in order.
  std::vector<double> nodes_of(const std::vector<double>& block_sums) const;
  // The sum of each shard; nodes[i]: those of share i.
  std::vector<double> shard_sums(const std::vector<std::vector<double>>& nodes) const;

  std::vector<Shard> shards_;  // parameters in order of add(), owned shards in order
  std::size_t share_;          // this rank's
  bool is_divided_;            // over dp
  std::vector<Block> blocks_;  // this rank's, in order of shards_
  Tensor device_blocks_;       // i64 [num_blocks, 2]
};

}  // namespace weft
