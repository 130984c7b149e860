// Rows of a batch; see the header.
#include "io/batch_reader.hpp"

#include <cassert>

namespace weft {

void BatchReader::read_into(const BatchIndices& indices, Range rows, HostBatch& batch) const {
  assert(0 <= rows.begin && rows.end <= static_cast<index_t>(indices.sample.size()));
  batch.step = indices.step;
  batch.epoch = indices.epoch;
  batch.num_real_global = indices.num_real;
  batch.x.resize(with_pixels_ ? rows.size() * Cifar10::image_bytes : 0);
  batch.labels.resize(rows.size());
  batch.dataset_index.resize(rows.size());
  batch.weight.resize(rows.size());
  for (index_t i = 0; i < rows.size(); ++i) {
    const index_t sample = indices.sample[rows.begin + i];
    const Cifar10Image image = data_->image(part_, sample);
    if (with_pixels_) {
      read_pixels(image, indices.epoch, sample,
                  ImageValues(batch.x.data() + i * Cifar10::image_bytes, Cifar10::image_bytes));
    }
    batch.labels[i] = image.label;
    batch.dataset_index[i] = sample;
    batch.weight[i] = indices.weight[rows.begin + i];
  }
}

void BatchReader::read_pixels(const Cifar10Image& image, index_t epoch, index_t sample,
                              ImageValues x) const {
  if (augment_seed_) {
    augment_into(image.pixels, crop_of(*augment_seed_, epoch, sample), normalization_, x);
  } else {
    normalise_into(image.pixels, normalization_, x);
  }
}

}  // namespace weft
