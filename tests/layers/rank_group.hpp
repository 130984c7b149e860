// Tensor-parallel ranks as threads, each with what a layer is handed: a context, an axis, pieces.
// A group of one runs on the calling thread, so that it may use several threads of its own.
#pragma once

#include <functional>
#include <vector>

#include "core/context.hpp"
#include "core/kernels/elementwise.hpp"
#include "core/parameter.hpp"
#include "core/reduce_tree.hpp"
#include "parallel/comm/communicator.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/comm/reduce_nodes.hpp"
#include "parallel/tensor/tensor_parallel.hpp"

namespace weft::testing {

struct RankGroup {
  index_t shards = 1;
  int tp = 1;
  int threads = 1;  // of a group of one
  bool sequence_parallel = false;
  std::uint64_t seed = 77;
};

// Numbers of threads for one rank to compare with one thread. None under tsan, which does not see
// OpenMP's own barriers and takes what they order for races.
inline std::vector<int> several_threads() {
#ifdef __SANITIZE_THREAD__
  return {};
#else
  return {2, 3};
#endif
}

// Numbers of shards, with each tp up to them. A sanitizer finds with a few what it finds with all.
inline std::vector<index_t> tested_shards() {
#ifdef WEFT_SANITIZED
  return {1, 3, 4};
#else
  return {1, 2, 3, 4, 6, 12};
#endif
}

struct TpRank {
  Context context;
  Communicator axis;
  TensorParallel tp;

  TpRank(const RankGroup& group, Transport& transport)
      : context(group.threads,
                {.num_pieces = group.shards, .num_token_blocks = group.shards, .seed = group.seed}),
        axis(transport, &context.trace, "tp", 1, all_ranks(transport)),
        tp(axis, group.shards, Order::tree,
           {.count = group.shards, .sequence_parallel = group.sequence_parallel}) {
    context.numerics.token_blocks = tp.owned_token_blocks();
  }

  // The end of a lane: the accumulators of all ranks' token blocks into the bound gradients.
  void fold_token_blocks(const ParameterSet& parameters) {
    const index_t n = parameters.token_block_range().size();
    if (n == 0) return;
    reduce_tree::Stack<Tensor> nodes(context.numerics.num_token_blocks);
    const Range blocks = context.numerics.token_blocks;
    for (index_t b = blocks.begin; b < blocks.end; ++b) {
      Tensor row(context.arena, MemoryKind::workspace, {n});
      kernels::copy(context, parameters.partials() + (b - blocks.begin) * n, row.data(), n);
      nodes.push({b, b + 1}, std::move(row), [&](Tensor left, Tensor right) {
        kernels::add(context, left.data(), right.data(), left.data(), n);
        return left;
      });
    }
    Tensor sum = nodes.nodes().front().value;
    if (blocks.size() < context.numerics.num_token_blocks) {
      sum = reduce_nodes(context, axis, "fold_token_blocks", Order::tree,
                         context.numerics.num_token_blocks, nodes);
    }
    kernels::copy(context, sum.data(), parameters.token_block_gradients(), n);
  }
};

// Catch2's assertions are for one thread: `body` throws, or leaves what is to be looked at in a
// place of its rank's own.
inline void run_group(const RankGroup& group, const std::function<void(TpRank&)>& body) {
  const auto run = [&](Transport& transport) {
    TpRank rank(group, transport);
    body(rank);
  };
  if (group.tp > 1) {
    run_ranks(group.tp, run);
  } else {
    const LocalWorld world(1);
    const auto transport = world.make_transport(0);
    run(*transport);
  }
}

}  // namespace weft::testing
