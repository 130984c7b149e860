// What is done about classes of unlike size: weights for the loss, or rows of rare classes more
// than once. Both follow from the labels of all training rows, never from a rank's part of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/range.hpp"

namespace weft {

// How many of `rows` have each label. Throws Error(usage) on a label outside 0..num_classes-1.
std::vector<index_t> count_classes(std::span<const int> labels, std::span<const index_t> rows,
                                   index_t num_classes);

// n / (num_classes * n_c) for n rows of which n_c have label c: over the rows the weights sum to n.
// Throws Error(usage) where a class has no row.
std::vector<double> class_weights(std::span<const int> labels, std::span<const index_t> rows,
                                  index_t num_classes);

// `rows` and behind them repetitions, so that each class has at least ceil(largest class / ratio)
// entries; classes that have them are left alone. With two classes and ratio r they end as 1 : r.
// Repeated are all of a class's rows as often as they fit, then those that come first in the order
// of 64 random bits of (seed, row). Throws Error(usage) where ratio < 1 or a class has no row.
//
// A sampler must draw positions of this list: equal entries would have equal random numbers.
std::vector<index_t> oversample(std::span<const int> labels, std::span<const index_t> rows,
                                index_t num_classes, double ratio, std::uint64_t seed);

}  // namespace weft
