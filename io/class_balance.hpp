// What evens out a rare class in training: weights for the loss, or a share of an epoch. It follows
// from the labels of the whole training part, never from a rank's part of it, so that it is the
// same on every layout; evaluation uses none of it.
#pragma once

#include <span>
#include <vector>

#include "core/range.hpp"

namespace weft {

struct ClassBalance {
  std::vector<float> weights = {};  // of a sample's loss, by class; empty: 1 for all
  // Where rare_share > 0, that share of an epoch's samples is drawn from `rare`, increasing indices
  // of training samples, the rest from the others.
  std::vector<index_t> rare = {};
  double rare_share = 0.0;
};

// How many of `rows` have each label. Throws Error(usage) on a label outside 0..num_classes-1.
std::vector<index_t> count_classes(std::span<const int> labels, std::span<const index_t> rows,
                                   index_t num_classes);

// n / (num_classes * n_c) for n rows of which n_c have label c: over the rows the weights sum to n.
// Throws Error(usage) where a class has no row.
std::vector<double> class_weights(std::span<const int> labels, std::span<const index_t> rows,
                                  index_t num_classes);

}  // namespace weft
