// Turns indices into numbers: the rows of a batch. Used by the loader's thread for training and
// directly by an evaluation.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "io/host_batch.hpp"
#include "io/sample_set.hpp"
#include "io/sampler.hpp"

namespace weft {

class BatchReader {
 public:
  // For evaluation. `data` must outlive the reader. `with_input` false: features and tokens stay
  // empty, for a pipeline stage that is not the first.
  explicit BatchReader(const SampleSet& data, bool with_input = true)
      : BatchReader(data, {}, {}, with_input) {}
  // For training. `augment_seed`: numerics.seed, or none. `class_weights`: of labels; empty: 1.
  BatchReader(const SampleSet& data, std::optional<std::uint64_t> augment_seed,
              std::vector<float> class_weights, bool with_input = true)
      : data_(&data),
        form_(data.form()),
        augment_seed_(augment_seed),
        class_weights_(std::move(class_weights)),
        with_input_(with_input) {}

  // Rows `rows` of the batch into `batch`, whose memory is used again. Throws Error(data) on a
  // damaged sample.
  void read_into(const BatchIndices& indices, Range rows, HostBatch& batch) const;

 private:
  const SampleSet* data_;
  SampleForm form_;
  std::optional<std::uint64_t> augment_seed_;
  std::vector<float> class_weights_;
  bool with_input_;
};

}  // namespace weft
