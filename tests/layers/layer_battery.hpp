// One battery for every layer: against the double oracle, and EXACT 7.4: forward, dx and all
// gradients have the bits of tp = 1 for all (S, tp <= S), with and without sequence parallel, on
// random and on hostile floats.
#pragma once

#include <functional>
#include <vector>

#include "tests/layers/layer_run.hpp"

namespace weft::testing {

// `sample_counts`: samples of a microbatch. With one token each: 1 leaves most token blocks empty,
// 7 are fewer than S = 12, 13 are no multiple of any S.
void check_layer(const std::function<LayerCase(index_t shards)>& case_of,
                 const std::function<Oracle(const LayerCase&)>& oracle_of,
                 const std::vector<index_t>& sample_counts = {1, 7, 13});

}  // namespace weft::testing
