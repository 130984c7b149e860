// The hash of a run's whole state out of what each rank holds, and the check that all copies of one
// thing are equal.
#pragma once

#include "core/hash.hpp"
#include "core/optimizer.hpp"
#include "core/parameter.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

// Collective over dp, tp and pp. Values count once: equal on all dp ranks, and on all tp ranks
// where they are replicated. The optimizer's state counts once too, whether dp ranks own slices of
// it or all hold all. The same on every rank of every layout. Throws Error(failed), on all ranks
// alike, where copies differ, naming a pair of ranks that hold them.
Hash128 run_hash(const ParameterSet& parameters, const Optimizer& optimizer, Communicator& tp,
                 Communicator& dp, Communicator& pp);

}  // namespace weft
