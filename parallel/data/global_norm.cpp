#include "parallel/data/global_norm.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/kernels/reduce.hpp"
#include "core/norm_block.hpp"
#include "core/reduce_tree.hpp"
#include "parallel/comm/gather_values.hpp"

namespace weft {

namespace {

double sum_of_two(double left, double right) { return left + right; }

// The tree over values[0..n).
double tree_sum(const double* values, index_t n) {
  if (n == 0) return 0.0;
  reduce_tree::Stack<double> stack(n);
  for (index_t i = 0; i < n; ++i) stack.push({i, i + 1}, values[i], sum_of_two);
  return stack.nodes().front().value;
}

// Collective: each member's numbers.
std::vector<std::vector<double>> gather(Communicator& axis, const std::vector<double>& mine) {
  return all_gather_values(axis, "global_norm", mine);
}

// blocks: i64 [num_blocks, 2], offset and length in `flat`.
std::vector<double> square_blocks(Context& context, const float* flat, const Tensor& blocks) {
  const index_t num_blocks = blocks.num_elements() / 2;
  const Tensor sums(context.arena, MemoryKind::workspace, {num_blocks}, DType::f64);
  const std::int64_t* block = blocks.data<std::int64_t>();
  double* sum = sums.data<double>();
  context.device.parallel_for(
      "weft/norm_blocks", num_blocks, KOKKOS_LAMBDA(index_t b) {
        const float* x = flat + block[2 * b];
        sum[b] = kernels::sum_of<double>(block[2 * b + 1], [=](index_t i) {
          const double value = x[i];
          return value * value;
        });
      });
  std::vector<double> host(static_cast<std::size_t>(num_blocks));
  context.device.fence();
  copy_to_host(host.data(), sums.raw(), sums.num_bytes());
  return host;
}

// The tree over each parameter's shards. shards[r]: the sums of tp rank r's owned shards, of
// replicated parameters from rank 0 alone.
std::vector<double> parameter_sums(const ParameterSet& parameters,
                                   const std::vector<std::vector<double>>& shards) {
  std::vector<const double*> next;
  for (const auto& of_rank : shards) next.push_back(of_rank.data());
  const auto num_ranks = static_cast<index_t>(shards.size());
  std::vector<double> sums, of_one;
  for (const auto& p : parameters.all()) {
    const index_t num_shards = p->spec.num_shards();
    of_one.clear();
    for (index_t shard = 0; shard < num_shards; ++shard) {
      const index_t owner =
          p->spec.is_replicated() ? 0 : part_holding(shard, num_ranks, num_shards);
      of_one.push_back(*next[static_cast<std::size_t>(owner)]++);
    }
    sums.push_back(tree_sum(of_one.data(), num_shards));
  }
  return sums;
}

}  // namespace

GlobalNorm::GlobalNorm(Context& context, const ParameterSet& parameters,
                       const std::vector<FlatRanges>& shares, int dp_rank)
    : share_(shares.size() == 1 ? 0 : static_cast<std::size_t>(dp_rank)),
      is_divided_(shares.size() > 1) {
  for (const auto& p : parameters.all()) {
    for_each_shard(p->spec, [&](index_t, Range local) {
      add_shard({p->offset + local.begin, p->offset + local.end}, shares);
    });
  }
  device_blocks_ = Tensor(context.arena, MemoryKind::workspace,
                          {static_cast<index_t>(blocks_.size()), 2}, DType::i64);
  copy_to_device(device_blocks_.raw(), blocks_.data(), device_blocks_.num_bytes());
}

void GlobalNorm::add_shard(Range flat, const std::vector<FlatRanges>& shares) {
  Shard shard{num_norm_blocks(flat.size()), {}};
  for (std::size_t owner = 0; owner < shares.size(); ++owner) {
    shares[owner].for_each_in(flat, [&](Range part, index_t) {
      assert((part.begin - flat.begin) % norm_block == 0);
      shard.runs.push_back(
          {{(part.begin - flat.begin) / norm_block, num_norm_blocks(part.end - flat.begin)},
           owner});
    });
  }
  std::sort(shard.runs.begin(), shard.runs.end(),
            [](const Run& a, const Run& b) { return a.blocks.begin < b.blocks.begin; });
  for (const Run& run : shard.runs) {
    if (run.owner != share_) continue;
    for (index_t b = run.blocks.begin; b < run.blocks.end; ++b) {
      const index_t begin = flat.begin + b * norm_block;
      blocks_.push_back({begin, std::min(norm_block, flat.end - begin)});
    }
  }
  shards_.push_back(std::move(shard));
}

std::vector<double> GlobalNorm::nodes_of(const std::vector<double>& block_sums) const {
  std::vector<double> nodes;
  const double* next = block_sums.data();
  for (const Shard& shard : shards_) {
    for (const Run& run : shard.runs) {
      if (run.owner != share_) continue;
      // A node's own tree is that over as many leaves.
      for (const Range node : reduce_tree::maximal_nodes(run.blocks, shard.num_blocks)) {
        nodes.push_back(tree_sum(next, node.size()));
        next += node.size();
      }
    }
  }
  return nodes;
}

std::vector<double> GlobalNorm::shard_sums(const std::vector<std::vector<double>>& nodes) const {
  std::vector<const double*> next;
  for (const auto& of_share : nodes) next.push_back(of_share.data());
  std::vector<double> sums;
  for (const Shard& shard : shards_) {
    reduce_tree::Stack<double> stack(shard.num_blocks);
    for (const Run& run : shard.runs) {
      for (const Range node : reduce_tree::maximal_nodes(run.blocks, shard.num_blocks))
        stack.push(node, *next[run.owner]++, sum_of_two);
    }
    assert(stack.nodes().size() <= 1);
    sums.push_back(stack.nodes().empty() ? 0.0 : stack.nodes().front().value);  // all pads: 0
  }
  return sums;
}

double GlobalNorm::of_gradients(Context& context, const ParameterSet& parameters, Communicator& tp,
                                Communicator& dp, Communicator& pp) {
  const Parameter& any = *parameters.all().front();
  const std::vector<double> mine =
      nodes_of(square_blocks(context, any.gradient - any.offset, device_blocks_));
  const std::vector<double> shards =
      shard_sums(is_divided_ ? gather(dp, mine) : std::vector<std::vector<double>>{mine});

  std::vector<double> told;  // tp rank 0 speaks for what all hold
  auto sum = shards.begin();
  for (const auto& p : parameters.all()) {
    for_each_shard(p->spec, [&](index_t, Range) {
      if (!p->spec.is_replicated() || tp.rank() == 0) told.push_back(*sum);
      ++sum;
    });
  }
  std::vector<double> all;
  for (const auto& of_stage : gather(pp, parameter_sums(parameters, gather(tp, told))))
    all.insert(all.end(), of_stage.begin(), of_stage.end());
  return std::sqrt(tree_sum(all.data(), static_cast<index_t>(all.size())));
}

}  // namespace weft
