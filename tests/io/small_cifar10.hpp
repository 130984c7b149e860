// A small set in CIFAR-10's format, written without weft's code: label of training image i is
// i mod 10, its pixels follow from i by a little arithmetic.
#pragma once

#include <cstdint>
#include <string>

#include "tests/io/temporary_folder.hpp"

namespace weft::test {

inline std::uint8_t small_pixel(std::int64_t image, std::int64_t position) {
  return static_cast<std::uint8_t>((image * 131 + position * 7 + (position >> 5) * 13) % 251);
}

// Training images are 0..5*rows-1, test images 5*rows..6*rows-1.
inline void write_small_cifar10(const std::string& folder, std::int64_t rows) {
  const std::string names[6] = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  std::filesystem::create_directories(folder);
  for (std::int64_t file = 0; file < 6; ++file) {
    std::string bytes;
    for (std::int64_t image = file * rows; image < (file + 1) * rows; ++image) {
      bytes.push_back(static_cast<char>(image % 10));
      for (std::int64_t i = 0; i < 3072; ++i)
        bytes.push_back(static_cast<char>(small_pixel(image, i)));
    }
    write_all(folder + "/" + names[file], bytes);
  }
  write_all(folder + "/batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
}

}  // namespace weft::test
