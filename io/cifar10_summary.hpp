// What a CIFAR-10 folder holds, in numbers: rows, classes, pixel statistics, and whether it is the
// official set byte for byte. For people and for tests; training uses none of it.
#pragma once

#include <array>
#include <vector>

#include "core/range.hpp"
#include "io/cifar10.hpp"

namespace weft {

// Of pixel / 255, per channel, over a whole part; from integer sums, so no order of adding matters.
struct PixelStatistics {
  std::array<double, Cifar10::num_channels> mean{};
  std::array<double, Cifar10::num_channels> std_dev{};  // population form
};

struct Cifar10Summary {
  using Counts = std::array<index_t, Cifar10::num_classes>;
  std::array<Counts, Cifar10::num_files> class_counts{};          // of each file
  std::array<std::vector<int>, Cifar10::num_files> first_labels;  // up to ten
  PixelStatistics training;
  PixelStatistics test;
  // Every file has the 128-bit hash (XXH3) of the official one.
  bool official = false;
};

// Reads every byte; throws Error(data) on a wrong label.
Cifar10Summary summarise(const Cifar10& data);

}  // namespace weft
