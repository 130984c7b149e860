// Counts and sums over all images; see the header.
#include "io/cifar10_summary.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace weft {

namespace {

// XXH3-128 of the six files of cifar-10-binary.tar.gz; taken from files whose SHA-1 sums were the
// published ones (data_batch_1: aadd24ac.., test_batch: 67eb016d..).
constexpr std::array<std::string_view, Cifar10::num_files> official_hashes = {
    "17a1d9684136764641ac9bacc0b7f4a7", "71aea62214a90ef4fe2060fa6cda726a",
    "0b9e82750fd27dbfb4bded95a257863a", "c8d5fdd3ac8f81bfc1de03fe2464dfde",
    "4ab45439496c80b8d237593ed2319c8c", "dbce07992febce8b437077c166f279d4"};

// How often each byte value occurs in each channel.
using Histogram = std::array<std::array<index_t, 256>, Cifar10::num_channels>;

void count_pixels(const Cifar10Image& image, Histogram& histogram) {
  for (index_t c = 0; c < Cifar10::num_channels; ++c) {
    for (index_t i = 0; i < Cifar10::plane; ++i)
      ++histogram[c][image.pixels[c * Cifar10::plane + i]];
  }
}

PixelStatistics statistics_of(const Histogram& histogram) {
  PixelStatistics result;
  for (index_t c = 0; c < Cifar10::num_channels; ++c) {
    index_t n = 0, sum = 0, squares = 0;
    for (index_t byte = 0; byte < 256; ++byte) {
      n += histogram[c][byte];
      sum += histogram[c][byte] * byte;
      squares += histogram[c][byte] * byte * byte;
    }
    const double mean = static_cast<double>(sum) / static_cast<double>(n);
    const double variance = static_cast<double>(squares) / static_cast<double>(n) - mean * mean;
    result.mean[c] = mean / 255.0;
    result.std_dev[c] = std::sqrt(std::max(variance, 0.0)) / 255.0;
  }
  return result;
}

bool is_official(const Cifar10& data, index_t file) {
  const auto bytes = data.bytes_of_file(file);
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64) == official_hashes[file];
}

}  // namespace

Cifar10Summary summarise(const Cifar10& data) {
  constexpr index_t num_first = 10;
  Cifar10Summary summary;
  summary.official = true;
  Histogram training{}, test{};
  for (index_t file = 0; file < Cifar10::num_files; ++file) {
    summary.official = summary.official && is_official(data, file);
    Histogram& histogram = file < Cifar10::num_training_files ? training : test;
    for (index_t row = 0; row < data.rows_per_file(); ++row) {
      const Cifar10Image image = data.image_of_file(file, row);
      ++summary.class_counts[file][image.label];
      if (row < num_first) summary.first_labels[file].push_back(image.label);
      count_pixels(image, histogram);
    }
  }
  summary.training = statistics_of(training);
  summary.test = statistics_of(test);
  return summary;
}

}  // namespace weft
