// Norm blocks: the units in which a parameter's elements are squared for the norm, hashed, and
// given to owners (EXACT 3.17, 3.18, 3.26). What is cut between them stays equal on every layout.
#pragma once

#include <algorithm>

#include "core/shard_spec.hpp"

namespace weft {

// Up to this many consecutive elements of one logical shard of one parameter.
inline constexpr index_t norm_block = 1024;

// Those of a shard of `length` elements, pads left out.
constexpr index_t num_norm_blocks(index_t length) { return (length + norm_block - 1) / norm_block; }

// Calls f(shard, range in local storage) for each owned shard, pads left out; they may be empty.
template <class F>
void for_each_shard(const ShardSpec& spec, const F& f) {
  for (index_t shard = spec.owned().begin; shard < spec.owned().end; ++shard) {
    const index_t begin = spec.offset(shard);
    f(shard, Range{begin, begin + spec.valid(shard).num_elements()});
  }
}

}  // namespace weft
