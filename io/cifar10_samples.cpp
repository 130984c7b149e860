#include "io/cifar10_samples.hpp"

namespace weft {

void Cifar10Samples::read(index_t index, const std::optional<Augmentation>& augmentation,
                          const SampleRow& row) const {
  const index_t num_training = images_.num_samples(Cifar10::Part::training);
  const Cifar10Image image = index < num_training
                                 ? images_.image(Cifar10::Part::training, index)
                                 : images_.image(Cifar10::Part::test, index - num_training);
  if (row.labels) *row.labels = image.label;
  if (!row.features) return;
  const ImageValues x(row.features, Cifar10::image_bytes);
  if (augmentation) {
    augment_into(image.pixels, crop_of(augmentation->seed, augmentation->epoch, index),
                 normalization_, x);
  } else {
    normalise_into(image.pixels, normalization_, x);
  }
}

SampleGroups Cifar10Samples::groups_of(std::string_view, std::span<const index_t>) const {
  return {{Cifar10::file_names.begin(), Cifar10::file_names.end()},
          [rows = images_.rows_per_file()](index_t sample) { return sample / rows; }};
}

}  // namespace weft
