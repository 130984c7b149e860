// Which part of its flat block each rank writes into a checkpoint: of what several ranks hold, one
// writes. Arithmetic on the parameters' specs alone, as in buckets.hpp.
#pragma once

#include <vector>

#include "core/flat_ranges.hpp"
#include "parallel/data/buckets.hpp"

namespace weft {

// What the ranks that hold the same thing write of it: an even share of the flat block each. dp
// ranks take slices that end with norm blocks (`slice` is this rank's); of parameters that every tp
// rank holds, tp ranks take one after the other in turns. Shares of all ranks make up everything,
// once. `parameters` in the order of ParameterSet::add().
FlatRanges write_share(const std::vector<FlatEntry>& parameters, int tp_rank, int tp_size,
                       const FlatRanges& slice);

// The slice of a dp rank where dp ranks own none (without ZeRO).
FlatRanges even_slice(const FlatLayout& layout, int dp_rank, int dp_size);

}  // namespace weft
