// Batches of samples of about the same length, each computed with as many tokens as its longest
// sample asks for, rounded up to one of a few numbers: less padding, another order of samples. A
// function of (lengths, seed, epoch), never of ranks, so every rank and stage knows without a
// message how long a batch is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/range.hpp"
#include "io/sample_set.hpp"

namespace weft {

// Global batches whose samples are sorted by length at a time: enough to make batches alike, few
// enough that a sample's batch still changes from epoch to epoch.
inline constexpr index_t batches_per_window = 32;

struct LengthBuckets {
  std::vector<index_t> bounds;        // rising, the last one a sample's tokens; empty: off
  std::vector<std::int32_t> lengths;  // of each sample of the data set, by its index

  bool is_on() const { return !bounds.empty(); }
  // The smallest bound that holds the longest of `samples`; 0 where buckets are off.
  index_t tokens_of(std::span<const index_t> samples) const;
};

// The lengths of `samples` are read, those of others are not and count as 0.
LengthBuckets make_length_buckets(const SampleSet& data, std::span<const index_t> samples,
                                  std::vector<index_t> bounds);

// `order`, an epoch's shuffled samples, is cut into windows of batches_per_window global batches
// (the last one may have fewer), each window sorted by length - samples of one length keep their
// order - and cut into batches, and the batches of the whole epoch are shuffled. What lies behind
// the last whole batch stays as it is: so `drop` and `pad` concern the samples that they would
// without buckets, and not the longest ones by rule.
void group_by_length(std::vector<index_t>& order, index_t global_batch,
                     const LengthBuckets& buckets, std::uint64_t seed, index_t epoch);

}  // namespace weft
