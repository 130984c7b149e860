// The 128-bit hash of a run's state: the sum over all norm blocks of hash(name, shard, block,
// bytes). A sum, so each rank adds what it owns and the order does not matter. Pads are not in it,
// replicas count once, every NaN is one value (EXACT 3.26).
#pragma once

#include "core/hash.hpp"
#include "core/optimizer.hpp"
#include "core/parameter.hpp"

namespace weft {

struct StateHash {
  struct Sums {
    Hash128 cut;         // of the pieces this rank holds: add those of all tp ranks
    Hash128 replicated;  // of what every tp rank holds: equal on all, counts once
    Sums& operator+=(const Sums& other) {
      cut += other.cut;
      replicated += other.replicated;
      return *this;
    }
    Hash128 total() const {
      Hash128 sum = cut;
      return sum += replicated;
    }
    friend bool operator==(const Sums&, const Sums&) = default;
  };
  Sums values;
  Sums states;  // of the optimizer, where it owns the elements
};

// Local. `optimizer` may be null: values only.
StateHash hash_state(const ParameterSet& parameters, const Optimizer* optimizer);

}  // namespace weft
