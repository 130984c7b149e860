// CIFAR-10 in its official binary form: six files of rows of one label byte and 3072 pixel bytes
// (planes red, green, blue, each 32 x 32 row by row). Any equal number of rows a file is legal, so
// small synthetic sets work. It knows files and rows; not splits, order or arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "io/mapped_file.hpp"

namespace weft {

struct Cifar10Image {
  int label;                                   // 0..9
  std::span<const std::uint8_t, 3072> pixels;  // lives as long as the Cifar10 it came from
};

class Cifar10 {
 public:
  enum class Part { training, test };

  static constexpr index_t num_classes = 10;
  static constexpr index_t num_channels = 3;
  static constexpr index_t side = 32;
  static constexpr index_t plane = side * side;
  static constexpr index_t image_bytes = num_channels * plane;
  static constexpr index_t row_bytes = 1 + image_bytes;
  static constexpr index_t num_training_files = 5;
  static constexpr index_t num_files = 6;  // the last one is the test part
  static constexpr std::array<const char*, num_files> file_names = {
      "data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
      "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  static constexpr const char* names_file = "batches.meta.txt";

  // Opens `folder` or its subfolder cifar10/. Checks that every file is there, is a whole number of
  // rows, and has as many rows as the others; throws Error(data). Labels are not read here (that
  // would touch every page of the files): each is checked when its image is read, all by verify().
  explicit Cifar10(const std::string& folder);

  const std::string& folder() const { return folder_; }  // the one that holds the files
  index_t rows_per_file() const { return rows_per_file_; }
  index_t num_samples(Part part) const {
    return part == Part::training ? num_training_files * rows_per_file_ : rows_per_file_;
  }
  const std::vector<std::string>& class_names() const { return class_names_; }

  // Sample `index` of a part: row index mod rows_per_file() of file index / rows_per_file(). Throws
  // Error(data) if its label is not 0..9. Any number of threads may read.
  Cifar10Image image(Part part, index_t index) const;
  // The same by file (0..5) and row.
  Cifar10Image image_of_file(index_t file, index_t row) const;
  // All bytes of a file (0..5).
  std::span<const std::uint8_t> bytes_of_file(index_t file) const { return files_[file].bytes(); }

  // Checks every label; the cost is one read of the files (milliseconds when cached).
  void verify() const;

  // 32 hexadecimal digits that tell this data from other data: a hash of the sizes and of all bytes
  // of the six files in their order. Where the folder lies does not matter. The cost is one read of
  // the files (tens of milliseconds when cached).
  std::string fingerprint() const;

 private:
  std::string folder_;
  std::vector<MappedFile> files_;
  std::vector<std::string> class_names_;
  index_t rows_per_file_ = 0;
};

}  // namespace weft
