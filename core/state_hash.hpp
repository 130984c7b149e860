// The 128-bit hash of a run's state: the sum over all norm blocks of hash(name, shard, block,
// bytes). A sum, so each rank adds what it owns and the order does not matter. Pads are not in it,
// replicas count once, every NaN is one value (EXACT 3.26).
#pragma once

#include "core/hash.hpp"
#include "core/optimizer.hpp"
#include "core/parameter.hpp"

namespace weft {

// A norm block: up to this many consecutive elements of one logical shard (EXACT 3.18).
inline constexpr index_t norm_block = 1024;

struct StateHash {
  Hash128 cut;         // of the pieces this rank owns: add those of all tp ranks
  Hash128 replicated;  // of what every tp rank holds: equal on all, counts once
};

// `optimizer` may be null: values only.
StateHash hash_state(const ParameterSet& parameters, const Optimizer* optimizer);

}  // namespace weft
