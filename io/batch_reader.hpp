// Turns indices into numbers: reads, augments and normalises the rows of a batch. Used by the
// loader's thread for training and directly by an evaluation.
#pragma once

#include <cstdint>
#include <optional>

#include "io/augment.hpp"
#include "io/cifar10.hpp"
#include "io/host_batch.hpp"
#include "io/sampler.hpp"

namespace weft {

class BatchReader {
 public:
  // `data` must outlive the reader. `augment_seed`: numerics.seed in training with augmentation,
  // none elsewhere (validation and test are only normalised). `with_pixels` false: x stays empty,
  // for a pipeline stage that is not the first.
  BatchReader(const Cifar10& data, Cifar10::Part part, std::optional<std::uint64_t> augment_seed,
              bool with_pixels = true)
      : data_(&data), part_(part), augment_seed_(augment_seed), with_pixels_(with_pixels) {}

  // Rows `rows` of the batch into `batch`, whose memory is used again. Throws Error(data) on a
  // wrong label.
  void read_into(const BatchIndices& indices, Range rows, HostBatch& batch) const;

 private:
  void read_pixels(const Cifar10Image& image, index_t epoch, index_t sample, ImageValues x) const;

  const Cifar10* data_;
  Cifar10::Part part_;
  std::optional<std::uint64_t> augment_seed_;
  bool with_pixels_;
  Normalization normalization_;
};

}  // namespace weft
