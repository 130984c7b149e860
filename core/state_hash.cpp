#include "core/state_hash.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <string>
#include <vector>

#include "core/norm_block.hpp"

namespace weft {

namespace {

// What is on the host at a time.
constexpr index_t chunk_blocks = 256;

// Norm blocks of one shard, the first of them number `first_block`: n elements of device memory.
Hash128 hash_blocks(const std::string& label, index_t first_block, const float* device, index_t n) {
  std::vector<float> host(static_cast<std::size_t>(std::min(n, chunk_blocks * norm_block)));
  Hash128 sum;
  for (index_t done = 0; done < n; done += chunk_blocks * norm_block) {
    const index_t here = std::min(chunk_blocks * norm_block, n - done);
    copy_to_host(host.data(), device + done, here * index_t{sizeof(float)});
    for (float& x : host) {
      if (std::isnan(x)) x = std::bit_cast<float>(0x7fc00000u);
    }
    for (index_t at = 0; at < here; at += norm_block) {
      const index_t length = std::min(norm_block, here - at);
      const index_t block = first_block + (done + at) / norm_block;
      sum += hash128(host.data() + at, static_cast<std::size_t>(length) * sizeof(float),
                     hash64(label + std::to_string(block)));
    }
  }
  return sum;
}

// `data`: what lies at offsets of `held`. Ranges in it begin and end with norm blocks.
void add_tensor(StateHash::Sums& sums, const Parameter& p, const std::string& name,
                const FlatRanges& held, const float* data) {
  for_each_shard(p.spec, [&](index_t shard, Range local) {
    const Range flat{p.offset + local.begin, p.offset + local.end};
    held.for_each_in(flat, [&](Range part, index_t offset) {
      assert((part.begin - flat.begin) % norm_block == 0);
      assert(part.end == flat.end || part.size() % norm_block == 0);
      (p.spec.is_replicated() ? sums.replicated : sums.cut) +=
          hash_blocks(name + "#" + std::to_string(shard) + "#",
                      (part.begin - flat.begin) / norm_block, data + offset, part.size());
    });
  });
}

}  // namespace

StateHash hash_state(const ParameterSet& parameters, const Optimizer* optimizer) {
  StateHash hash;
  const FlatRanges all = everything_of(parameters);
  for (const auto& p : parameters.all()) {
    add_tensor(hash.values, *p, p->name, all, parameters.values());
    if (!optimizer) continue;
    for (const auto& state : optimizer->states()) {
      add_tensor(hash.states, *p, p->name + "/" + std::string(state.name), optimizer->owned(),
                 state.data);
    }
  }
  return hash;
}

}  // namespace weft
