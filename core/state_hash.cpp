#include "core/state_hash.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace weft {

namespace {

Hash128 hash_shard(const std::string& name, index_t shard, const float* device, index_t n) {
  std::vector<float> host(static_cast<std::size_t>(n));
  copy_to_host(host.data(), device, n * index_t{sizeof(float)});
  for (float& x : host) {
    if (std::isnan(x)) x = std::bit_cast<float>(0x7fc00000u);
  }
  Hash128 sum;
  for (index_t first = 0; first < n; first += norm_block) {
    const index_t length = std::min(norm_block, n - first);
    const std::string label =
        name + "#" + std::to_string(shard) + "#" + std::to_string(first / norm_block);
    sum += hash128(host.data() + first, static_cast<std::size_t>(length) * sizeof(float),
                   hash64(label));
  }
  return sum;
}

void add_tensor(StateHash& hash, const Parameter& p, const std::string& name, const float* local) {
  for (index_t shard = p.spec.owned().begin; shard < p.spec.owned().end; ++shard) {
    const Hash128 part =
        hash_shard(name, shard, local + p.spec.offset(shard), p.spec.valid(shard).num_elements());
    (p.spec.is_replicated() ? hash.replicated : hash.cut) += part;
  }
}

}  // namespace

StateHash hash_state(const ParameterSet& parameters, const Optimizer* optimizer) {
  StateHash hash;
  for (const auto& p : parameters.all()) {
    add_tensor(hash, *p, p->name, p->value);
    if (!optimizer) continue;
    for (const auto& state : optimizer->states()) {
      add_tensor(hash, *p, p->name + "/" + std::string(state.name), state.flat + p->offset);
    }
  }
  return hash;
}

}  // namespace weft
