// The samples that a model is judged by in slices: by their label, by parts of their order, by a
// column. What is asked for is a word each; what a data set can be told apart by, it says itself.
// Functions of indices and data, so every rank has the same slices.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "io/sample_set.hpp"

namespace weft {

// One way to cut a list of samples: each is in exactly one slice.
struct SampleSlices {
  std::string by;                  // "class", "time=4", "column:job"
  std::vector<std::string> names;  // of the slices; one may have no sample
  std::vector<index_t> slice_of;   // of each sample of the list, a place in `names`
};

// The words, legal in any data set that knows them:
//   class        by label, where a sample has one
//   time         in parts of equal size (of n samples in p parts, by the range rule), in the order
//   of time=P       the samples, where that is one of time; P: 4. "position" where it is one of
//   places
//                in a text
//   column:NAME  by SampleSet::groups_of
// One after the other; what is asked for twice comes once. `judged`: samples, increasing;
// `training`: those that bounds are learnt from. Throws Error(usage) on other words, with the
// nearest one and those that there are.
std::vector<SampleSlices> make_slices(const SampleSet& data, std::span<const index_t> judged,
                                      std::span<const index_t> training,
                                      const std::vector<std::string>& words);

}  // namespace weft
