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
// once. `layout` is that of `parameters`, which are in the order of ParameterSet::add().
FlatRanges write_share(const FlatLayout& layout, const std::vector<FlatEntry>& parameters,
                       int tp_rank, int tp_size, const FlatRanges& slice);

// Whose slices_of() the dp ranks write: with ZeRO those that they own, else even ones, as of one
// bucket.
std::vector<Bucket> write_buckets(const FlatLayout& layout, bool has_zero, index_t bucket_bytes,
                                  int dp_size);

}  // namespace weft
