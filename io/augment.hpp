// From pixel bytes to the numbers that a model sees: normalisation with the constants of the
// training images, and, in training only, a random crop of the image padded by 4 black pixels and a
// random flip. Pure functions; which image gets which crop follows from (seed, epoch, index).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/range.hpp"

namespace weft {

inline constexpr index_t crop_padding = 4;

// Row y, column x of the crop is row y + dy - 4, column x + dx - 4 of the image (black outside),
// then columns are mirrored if `flip`.
struct Crop {
  index_t dy = crop_padding;  // 0..8
  index_t dx = crop_padding;  // 0..8
  bool flip = false;
  friend constexpr bool operator==(const Crop&, const Crop&) = default;
};

// Philox counter (epoch, dataset index) of stream `augmentation`: the same on any rank.
Crop crop_of(std::uint64_t seed, index_t epoch, index_t dataset_index);

// (byte / 255 - mean) / std for every channel and byte: evaluated in f64 and rounded to f32 once,
// so that a lookup is both the fastest and the most exact form.
class Normalization {
 public:
  Normalization();  // CIFAR-10's training pixels
  const float* channel(index_t c) const { return value_[c].data(); }

  static constexpr std::array<double, 3> mean = {0.491400, 0.482158, 0.446531};
  static constexpr std::array<double, 3> std_dev = {0.247032, 0.243485, 0.261588};

 private:
  std::array<std::array<float, 256>, 3> value_;
};

using ImagePixels = std::span<const std::uint8_t, 3072>;  // [3, 32, 32]
using ImageValues = std::span<float, 3072>;               // the same order

void normalise_into(ImagePixels pixels, const Normalization& normalization, ImageValues x);
void augment_into(ImagePixels pixels, const Crop& crop, const Normalization& normalization,
                  ImageValues x);

}  // namespace weft
