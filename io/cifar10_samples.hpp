// CIFAR-10 as samples: images normalised, in training also cropped and flipped. The training images
// come first, behind them the test images.
#pragma once

#include "io/augment.hpp"
#include "io/cifar10.hpp"
#include "io/sample_set.hpp"

namespace weft {

class Cifar10Samples final : public SampleSet {
 public:
  // As Cifar10.
  explicit Cifar10Samples(const std::string& folder) : images_(folder) {}

  const Cifar10& images() const { return images_; }

  const std::string& folder() const override { return images_.folder(); }
  index_t num_samples() const override {
    return images_.num_samples(Cifar10::Part::training) + images_.num_samples(Cifar10::Part::test);
  }
  SampleForm form() const override { return {.features = Cifar10::image_bytes}; }
  const std::vector<std::string>& class_names() const override { return images_.class_names(); }
  std::string fingerprint() const override { return images_.fingerprint(); }
  void read(index_t index, const std::optional<Augmentation>& augmentation,
            const SampleRow& row) const override;

  // "file": which of the official six an image is in.
  std::vector<std::string> column_names() const override { return {"file"}; }
  SampleGroups groups_of(std::string_view column, std::span<const index_t> training) const override;

 private:
  Cifar10 images_;
  Normalization normalization_;
};

}  // namespace weft
