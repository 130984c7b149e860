// Which sample is where in which step: a function of (list of samples, seed, step), never of ranks.
// Samplers name samples; they read none.
#pragma once

#include <cstdint>
#include <vector>

#include "core/range.hpp"
#include "io/class_balance.hpp"
#include "io/length_buckets.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// The samples of one global batch (or of one evaluation microbatch). Rows beyond `num_real` are
// padding: they repeat the first sample and weigh 0.
struct BatchIndices {
  index_t step = 0;             // from 0, over the whole run
  index_t epoch = 0;            // from 0
  std::vector<index_t> sample;  // index in the data set, for each row
  std::vector<float> weight;    // 1 real, 0 padding
  index_t num_real = 0;
  index_t tokens = 0;  // that each sample is cut to, by length buckets; 0: all that it has
};

// Where sample j of a global batch goes.
struct SamplePlace {
  index_t lane;
  index_t microbatch;
  index_t row;
  friend constexpr bool operator==(const SamplePlace&, const SamplePlace&) = default;
};

constexpr SamplePlace place_of(index_t j, index_t micro, index_t microbatches_per_lane) {
  return {j / (micro * microbatches_per_lane), j / micro % microbatches_per_lane, j % micro};
}

// The rows j of the global batch that belong to `lanes`, in the order lane, microbatch, row: they
// are consecutive.
constexpr Range rows_of_lanes(Range lanes, index_t micro, index_t microbatches_per_lane) {
  const index_t rows = micro * microbatches_per_lane;
  return {lanes.begin * rows, lanes.end * rows};
}

// Batches of training: each sample at most once an epoch (with `pad` exactly once), a new order
// every epoch. Where a share of an epoch is to come from rare samples, an epoch is as long, but rare
// samples come as often as that takes: all of them once, then all once more, and so on, each time
// in a new order; likewise the others, if they are too few. With length buckets, batches are of
// samples of about one length (group_by_length). Keeps the order of the last epoch asked for, so
// one object serves one thread; copy it for another.
class Sampler {
 public:
  // `samples`: indices in the data set, whose order does not matter. Throws Error(usage) if `drop`
  // leaves no batch.
  Sampler(std::vector<index_t> samples, index_t global_batch, LastBatch last, std::uint64_t seed,
          const ClassBalance& balance = {}, LengthBuckets buckets = {});

  index_t num_samples() const { return static_cast<index_t>(samples_.size()); }
  index_t global_batch() const { return global_batch_; }
  index_t steps_per_epoch() const;
  // The batch of a step; step = epoch * steps_per_epoch() + step in the epoch.
  BatchIndices indices_of(index_t step);
  // All samples in the order of an epoch. Valid until the next call with another epoch.
  const std::vector<index_t>& order_of(index_t epoch);

 private:
  void balance_order(index_t epoch);

  std::vector<index_t> samples_;
  index_t global_batch_;
  LastBatch last_;
  std::uint64_t seed_;
  LengthBuckets buckets_;
  std::vector<index_t> rare_, common_;  // empty: the order is all samples once
  index_t num_rare_ = 0;                // of an epoch
  index_t ordered_epoch_ = -1;
  std::vector<index_t> order_;
};

// Microbatches of evaluation: the samples in their given order, cut in microbatches of one size,
// the last one padded. `step` of the indices is the microbatch's number.
class EvalSampler {
 public:
  EvalSampler(std::vector<index_t> samples, index_t micro);

  index_t num_samples() const { return static_cast<index_t>(samples_.size()); }
  index_t micro() const { return micro_; }
  index_t num_microbatches() const { return (num_samples() + micro_ - 1) / micro_; }
  BatchIndices indices_of(index_t microbatch) const;

 private:
  std::vector<index_t> samples_;
  index_t micro_;
};

}  // namespace weft
