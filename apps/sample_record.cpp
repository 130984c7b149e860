#include "apps/sample_record.hpp"

#include <xxhash.h>

#include <vector>

namespace weft {

namespace {

// The step's number first, so that steps that have changed places do not cancel out.
std::uint64_t hash_of(index_t step, std::vector<std::int64_t> samples) {
  samples.insert(samples.begin(), step);
  return XXH3_64bits(samples.data(), samples.size() * sizeof(samples[0]));
}

}  // namespace

void SampleRecord::add(const HostBatch& batch, bool updated) {
  const index_t labels = static_cast<index_t>(batch.labels.size()) / batch.num_rows();
  std::vector<std::int64_t> samples;
  for (index_t row = 0; row < batch.num_rows(); ++row) {
    if (batch.weight[row * labels] != 0.0f) samples.push_back(batch.dataset_index[row]);
  }
  samples_hash_ += hash_of(batch.step, std::move(samples));
  updates_ += updated ? 1 : 0;
}

void SampleRecord::add(const BatchIndices& indices, Range rows) {
  std::vector<std::int64_t> samples;
  for (index_t row = rows.begin; row < rows.end; ++row) {
    if (indices.weight[row] != 0.0f) samples.push_back(indices.sample[row]);
  }
  samples_hash_ += hash_of(indices.step, std::move(samples));
  updates_ += 1;
}

SampleRecord expected_record(const Plan& plan, const TrainingData& data, index_t dp_rank,
                             Range steps) {
  Sampler sampler = training_sampler(plan, data);
  const Range rows =
      rows_of_lanes(plan.lanes_of(dp_rank), plan.batch.micro, plan.microbatches_per_lane());
  SampleRecord record;
  for (index_t step = steps.begin; step < steps.end; ++step)
    record.add(sampler.indices_of(step), rows);
  return record;
}

}  // namespace weft
