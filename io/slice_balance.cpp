#include "io/slice_balance.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <numeric>

namespace weft {

namespace {

// The samples of each part, in the order of indices.
std::array<std::vector<index_t>, num_data_parts> samples_by_part(
    index_t num_samples, const Split& split, const std::vector<index_t>& damaged) {
  std::array<std::vector<index_t>, num_data_parts> samples;
  const std::vector<DataPart> parts = parts_of(num_samples, split);
  for (index_t sample = 0; sample < num_samples; ++sample) {
    if (std::binary_search(damaged.begin(), damaged.end(), sample)) continue;
    const DataPart part = parts[static_cast<std::size_t>(sample)];
    samples[static_cast<std::size_t>(part)].push_back(sample);
  }
  return samples;
}

int label_of(const SampleSet& data, index_t sample) {
  std::int32_t label = 0;
  data.read(sample, std::nullopt, {.labels = &label});
  return label;
}

void add_part(const SampleSet& data, DataPart part, const std::vector<index_t>& samples,
              const SampleSlices& cut, SliceBalance& balance) {
  std::vector<SliceBalance::Slice> slices;
  for (const std::string& name : cut.names)
    slices.push_back({part, name, std::vector<index_t>(data.class_names().size(), 0)});
  for (std::size_t i = 0; i < samples.size(); ++i) {
    SliceBalance::Slice& slice = slices[static_cast<std::size_t>(cut.slice_of[i])];
    ++slice.class_counts[static_cast<std::size_t>(label_of(data, samples[i]))];
  }
  std::erase_if(slices, [](const auto& slice) { return slice.num_samples() == 0; });
  balance.slices.insert(balance.slices.end(), slices.begin(), slices.end());
}

}  // namespace

index_t SliceBalance::Slice::num_samples() const {
  return std::accumulate(class_counts.begin(), class_counts.end(), index_t{0});
}

std::vector<SliceBalance> balance_of_slices(const SampleSet& data, const Split& split,
                                            const std::vector<std::string>& words,
                                            const std::vector<index_t>& damaged) {
  if (words.empty()) return {};
  assert(data.form().labels == 1);
  const auto samples = samples_by_part(data.num_samples(), split, damaged);
  std::vector<SliceBalance> all;
  for (std::size_t part = 0; part < samples.size(); ++part) {
    if (samples[part].empty()) continue;
    const std::vector<SampleSlices> cuts =
        make_slices(data, samples[part], samples[std::size_t{0}], words);
    all.resize(cuts.size());
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      all[i].by = cuts[i].by;
      add_part(data, static_cast<DataPart>(part), samples[part], cuts[i], all[i]);
    }
  }
  return all;
}

}  // namespace weft
