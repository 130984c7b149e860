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

}  // namespace weft
