// How many samples of each class are in each slice of each part of a split: for people and for
// tests; training uses none of it.
#pragma once

#include <string>
#include <vector>

#include "io/data_part.hpp"
#include "io/sample_slices.hpp"
#include "io/split.hpp"

namespace weft {

struct SliceBalance {
  struct Slice {
    DataPart part = DataPart::train;
    std::string name;  // as `weft eval --slices` calls it, who cuts a part the same way
    std::vector<index_t> class_counts;
    index_t num_samples() const;
  };
  std::string by;             // as SampleSlices has it
  std::vector<Slice> slices;  // part by part; without those of no sample
};

// Each part apart, as make_slices cuts it by `words`; bounds are learnt from the training part.
// `damaged`: samples without a legal label, increasing, which are left out. Samples have one label
// each. Throws Error(usage) as make_slices.
std::vector<SliceBalance> balance_of_slices(const SampleSet& data, const Split& split,
                                            const std::vector<std::string>& words,
                                            const std::vector<index_t>& damaged = {});

}  // namespace weft
