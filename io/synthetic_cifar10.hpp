// Procedural images of ten classes in CIFAR-10's own files: something to train on where the real
// set cannot be had. Learnable but not trivial; no stand-in for the real set in a result.
//
// A class is a pair (colour, grating) of 5 colours and 5 gratings, so that neither alone tells it.
// Over it lie a disc in the class's colour at a random place, a second grating that means nothing,
// a slope of light and noise; the class's own part is weak in some images, so not all can be told.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/range.hpp"

namespace weft {

struct SyntheticCifar10Options {
  index_t rows_per_file = 10000;
  std::uint64_t seed = 1;
};

// One row (label byte, 3072 pixel bytes) of file 0..5: a function of its arguments in integer
// arithmetic, so the same bits on any machine.
void synthetic_cifar10_row(std::uint64_t seed, index_t file, index_t row,
                           std::span<std::uint8_t, 3073> bytes);

// Writes the six files and the class names into `folder`, which is made if missing. Each file takes
// its name when it is complete. Throws Error(usage) if any of them exists or an option is not
// legal, before anything is written. `progress(done, all)` is told of rows, some times a file.
void make_synthetic_cifar10(const std::string& folder, const SyntheticCifar10Options& options,
                            const std::function<void(index_t, index_t)>& progress = {});

}  // namespace weft
