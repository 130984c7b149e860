// The fixed division of a data set's samples into what is trained on, validated on and tested on. A
// function of its arguments alone, so every rank has the same one; the record goes into the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

struct Split {
  std::uint64_t seed = 0;
  // Indices of samples, increasing; none is in two of them.
  std::vector<index_t> train = {};
  std::vector<index_t> validation = {};
  std::vector<index_t> test = {};
};

// Sorts 0..num_samples-1 by (64 bits of stream `split`, index): the first `validation` of them are
// the validation part (so it stays the same when `train` is made smaller), the next `train` the
// training part. Throws Error(usage) if the counts are not legal.
Split make_split(index_t num_samples, index_t train, index_t validation, std::uint64_t seed);

// The samples begin .. end - 1: a part that the data set itself sets aside.
std::vector<index_t> all_of(Range range);

// One JSON object: seed, counts, a 128-bit hash of each list, the first indices of each.
std::string split_record(const Split& split);

}  // namespace weft
