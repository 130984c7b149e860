// Crops and normalisation; every inner loop runs over a contiguous row.
#include "io/augment.hpp"

#include <algorithm>

#include "core/random.hpp"
#include "io/cifar10.hpp"

namespace weft {

namespace {

constexpr index_t side = Cifar10::side;
static_assert(Cifar10::num_channels == 3 && Cifar10::image_bytes == 3072);

// One row of a crop. `source` is the image's row, or null where the crop reaches over the image.
void crop_row(const std::uint8_t* source, const Crop& crop, const float* table, float* x) {
  if (source == nullptr) {
    std::fill(x, x + side, table[0]);
    return;
  }
  const index_t shift = crop.dx - crop_padding;  // column of the image under column 0
  const Range inside = intersection({-shift, side - shift}, {0, side});
  std::fill(x, x + inside.begin, table[0]);
  for (index_t i = inside.begin; i < inside.end; ++i) x[i] = table[source[i + shift]];
  std::fill(x + inside.end, x + side, table[0]);
  if (crop.flip) std::reverse(x, x + side);
}

}  // namespace

Crop crop_of(std::uint64_t seed, index_t epoch, index_t dataset_index) {
  const auto e = static_cast<std::uint64_t>(epoch);
  const random::Words words = random::words_at(
      random::key_of(seed, Stream::augmentation), static_cast<std::uint32_t>(e >> 32),
      static_cast<std::uint32_t>(e), static_cast<std::uint64_t>(dataset_index));
  constexpr std::uint32_t num_offsets = 2 * crop_padding + 1;
  return {random::below(words.word[0], num_offsets), random::below(words.word[1], num_offsets),
          random::below(words.word[2], 2) == 1};
}

Normalization::Normalization() {
  for (std::size_t c = 0; c < value_.size(); ++c) {
    for (int byte = 0; byte < 256; ++byte) {
      value_[c][byte] = static_cast<float>((byte / 255.0 - mean[c]) / std_dev[c]);
    }
  }
}

void normalise_into(ImagePixels pixels, const Normalization& normalization, ImageValues x) {
  for (index_t c = 0; c < Cifar10::num_channels; ++c) {
    const float* const table = normalization.channel(c);
    const std::uint8_t* const from = pixels.data() + c * Cifar10::plane;
    float* const to = x.data() + c * Cifar10::plane;
    for (index_t i = 0; i < Cifar10::plane; ++i) to[i] = table[from[i]];
  }
}

void augment_into(ImagePixels pixels, const Crop& crop, const Normalization& normalization,
                  ImageValues x) {
  for (index_t c = 0; c < Cifar10::num_channels; ++c) {
    const std::uint8_t* const from = pixels.data() + c * Cifar10::plane;
    float* const to = x.data() + c * Cifar10::plane;
    for (index_t y = 0; y < side; ++y) {
      const index_t source_y = y + crop.dy - crop_padding;
      const bool outside = source_y < 0 || source_y >= side;
      crop_row(outside ? nullptr : from + source_y * side, crop, normalization.channel(c),
               to + y * side);
    }
  }
}

}  // namespace weft
