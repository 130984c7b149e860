#include "parallel/data/global_norm.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "core/kernels/reduce.hpp"
#include "core/reduce_tree.hpp"
#include "core/state_hash.hpp"

namespace weft {

namespace {

// The tree over values[0..n).
double tree_sum(const double* values, index_t n) {
  if (n == 0) return 0.0;
  reduce_tree::Stack<double> stack(n);
  for (index_t i = 0; i < n; ++i)
    stack.push({i, i + 1}, values[i], [](double a, double b) { return a + b; });
  return stack.nodes().front().value;
}

}  // namespace

GlobalNorm::GlobalNorm(Context& context, const ParameterSet& parameters) {
  for (const auto& p : parameters.all()) {
    for (index_t shard = p->spec.owned().begin; shard < p->spec.owned().end; ++shard) {
      const index_t n = p->spec.valid(shard).num_elements();
      const index_t start = p->offset + p->spec.offset(shard);
      for (index_t first = 0; first < n; first += norm_block) {
        blocks_.push_back({start + first, std::min(norm_block, n - first)});
      }
    }
  }
  device_blocks_ = Tensor(context.arena, MemoryKind::workspace,
                          {static_cast<index_t>(blocks_.size()), 2}, DType::i64);
  copy_to_device(device_blocks_.raw(), blocks_.data(), device_blocks_.num_bytes());
}

std::vector<double> GlobalNorm::shard_sums(const ParameterSet& parameters,
                                           const std::vector<double>& blocks,
                                           bool with_replicated) const {
  std::vector<double> sums;
  const double* next = blocks.data();
  for (const auto& p : parameters.all()) {
    for (index_t shard = p->spec.owned().begin; shard < p->spec.owned().end; ++shard) {
      const index_t count = (p->spec.valid(shard).num_elements() + norm_block - 1) / norm_block;
      if (with_replicated || !p->spec.is_replicated()) sums.push_back(tree_sum(next, count));
      next += count;
    }
  }
  return sums;
}

double GlobalNorm::of_gradients(Context& context, const ParameterSet& parameters,
                                Communicator& tp) {
  const auto num_blocks = static_cast<index_t>(blocks_.size());
  const Tensor sums(context.arena, MemoryKind::workspace, {num_blocks}, DType::f64);
  const float* flat = parameters.all().front()->gradient - parameters.all().front()->offset;
  const std::int64_t* block = device_blocks_.data<std::int64_t>();
  double* sum = sums.data<double>();
  context.device.parallel_for(
      "weft/norm_blocks", num_blocks, KOKKOS_LAMBDA(index_t b) {
        const float* x = flat + block[2 * b];
        sum[b] = kernels::sum_of<double>(block[2 * b + 1], [=](index_t i) {
          const double value = x[i];
          return value * value;
        });
      });
  std::vector<double> host(blocks_.size());
  context.device.fence();
  copy_to_host(host.data(), sums.raw(), sums.num_bytes());

  // Every rank gets every shard's sum and finishes alone. tp rank 0 speaks for what all hold.
  const std::vector<double> mine = shard_sums(parameters, host, tp.rank() == 0);
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()),
                               mine.size() * sizeof(double));
  const std::vector<std::string> all = tp.all_gather_strings("global_norm", bytes);

  std::vector<const char*> next;
  for (const std::string& text : all) next.push_back(text.data());
  std::vector<double> per_parameter;
  for (const auto& p : parameters.all()) {
    std::vector<double> shards(static_cast<std::size_t>(p->spec.num_shards()));
    for (index_t shard = 0; shard < p->spec.num_shards(); ++shard) {
      const auto owner = static_cast<std::size_t>(
          part_holding(shard, p->spec.is_replicated() ? 1 : tp.size(), p->spec.num_shards()));
      std::memcpy(&shards[static_cast<std::size_t>(shard)], next[owner], sizeof(double));
      next[owner] += sizeof(double);
    }
    per_parameter.push_back(tree_sum(shards.data(), p->spec.num_shards()));
  }
  return std::sqrt(tree_sum(per_parameter.data(), static_cast<index_t>(per_parameter.size())));
}

}  // namespace weft
