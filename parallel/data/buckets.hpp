// How the flat gradient is divided: into buckets, each one collective over dp, and each bucket into
// slices, one for each dp rank (ZeRO). Arithmetic on the parameters' specs alone, so that every
// rank and the plan's memory model know who owns what without a message.
//
//   flat block   | patch.weight | qkv.weight | up.weight | head.weight | norms, biases |
//   buckets      |  3 |       2      |     1     |         0           |       4       |   in order
//   of slices, dp=2 |0|1 |   0   |  1   |   0  | 1  |     0     |   1     |   0   |   1   | launch
//
// Backward goes from the last layer to the first: buckets fill from the end. What is summed by
// token blocks lies last and is complete last, when a lane ends. All cuts lie where a norm block
// begins (EXACT 3.17); nothing is padded.
#pragma once

#include <vector>

#include "core/flat_ranges.hpp"
#include "core/parameter.hpp"
#include "core/shard_spec.hpp"

namespace weft {

// Where the flat blocks of a rank may be cut.
struct FlatLayout {
  std::vector<index_t> cuts{0};    // increasing: 0, the starts of norm blocks, the end
  index_t token_blocks_begin = 0;  // one of the cuts: from here on GradientRows::token_blocks
  std::vector<Range> places = {};  // of each parameter, in the order of ParameterSet::add()
};

struct FlatEntry {
  ShardSpec spec;
  GradientRows rows = GradientRows::all;
};

// `parameters` in the order of ParameterSet::add(), which places them by the same rule.
FlatLayout flat_layout(const std::vector<FlatEntry>& parameters);
FlatLayout flat_layout(const ParameterSet& parameters);

struct Bucket {
  Range flat;
  // dp_size + 1 positions in the flat block: rank r has cuts[r]..cuts[r+1].
  std::vector<index_t> cuts;
};

// In order of launch. A bucket has as many norm blocks as fit in `bucket_bytes`, at least one.
// Slices are as even as norm blocks allow, over all buckets together: what one bucket leaves
// uneven, the next makes up for. With more ranks than norm blocks some slices are empty.
std::vector<Bucket> make_buckets(const FlatLayout& layout, index_t bucket_bytes, int dp_size);

// All slices of one dp rank.
FlatRanges slices_of(const std::vector<Bucket>& buckets, int dp_rank);

}  // namespace weft
