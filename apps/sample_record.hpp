// What a replica was trained with: how many updates it made, and a hash of the samples in them. All
// ranks of a replica count alike, and the plan alone says what each replica's record must be.
#pragma once

#include <cstdint>

#include "apps/training_data.hpp"
#include "io/host_batch.hpp"
#include "io/sampler.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

class SampleRecord {
 public:
  // A step of this replica, by what it has of the global batch: real rows count, in their order.
  // `updated`: false where the step was skipped.
  void add(const HostBatch& batch, bool updated);
  void add(const BatchIndices& indices, Range rows);

  index_t updates() const { return updates_; }
  // Of (step, samples in order) of all steps added, in any order of steps.
  std::uint64_t samples_hash() const { return samples_hash_; }
  friend bool operator==(const SampleRecord&, const SampleRecord&) = default;

 private:
  index_t updates_ = 0;
  std::uint64_t samples_hash_ = 0;
};

// Of replica `dp_rank` of the plan over `steps`, without training.
SampleRecord expected_record(const Plan& plan, const TrainingData& data, index_t dp_rank,
                             Range steps);

}  // namespace weft
