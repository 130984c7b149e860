// What may be wrong with a CIFAR-10 folder whose files have the right sizes: damaged rows, equal
// images, and images that two splits share. For people and for tests; training uses none of it.
#pragma once

#include <array>
#include <vector>

#include "core/range.hpp"
#include "io/cifar10.hpp"
#include "io/data_part.hpp"
#include "io/split.hpp"

namespace weft {

struct ImagePlace {
  DataPart part = DataPart::train;
  index_t file = 0;  // 0..5, as Cifar10::file_names
  index_t row = 0;
  int label = 0;  // the byte of the file
};

struct DamagedRow {
  ImagePlace place;
  bool has_label = true;  // false: it is not 0..9
  bool is_blank = false;  // all 3072 pixel bytes are equal, as where a disk lost a block
};

// Images equal in every pixel, two or more, in the order of files and rows.
struct EqualImages {
  std::vector<ImagePlace> places;
  bool spans_parts() const { return weft::spans_parts(places); }
  bool labels_differ() const { return weft::labels_differ(places); }
};

struct Cifar10Check {
  using Counts = std::array<index_t, Cifar10::num_classes>;
  std::array<Counts, num_data_parts> class_counts{};  // of rows whose label is one
  std::vector<DamagedRow> damaged;                    // in the order of files and rows
  std::vector<EqualImages> equal;  // without blank images; ordered by first places

  index_t num_leaks() const;
};

// Reads every byte; `split` is of the folder's training images. Unlike everything else that reads
// the folder it goes on at a damaged row.
Cifar10Check check(const Cifar10& data, const Split& split);

}  // namespace weft
