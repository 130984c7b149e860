// Which part of a data set a sample is in: what the checks of data sets tell rows apart by.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/range.hpp"
#include "io/split.hpp"

namespace weft {

// `unused`: samples that the split leaves out.
enum class DataPart { train, validation, test, unused };
inline constexpr int num_data_parts = 4;
std::string_view name_of(DataPart part);

// Of samples 0..num_samples-1, which hold all of the split's.
std::vector<DataPart> parts_of(index_t num_samples, const Split& split);

// Of places of equal samples, with members `part` and `label`. A leak: what is learnt is judged by,
// but for unused ones.
template <class Place>
bool spans_parts(const std::vector<Place>& places) {
  const DataPart* first = nullptr;
  for (const Place& place : places) {
    if (place.part == DataPart::unused) continue;
    if (first != nullptr && *first != place.part) return true;
    first = &place.part;
  }
  return false;
}

// One of them is wrong.
template <class Place>
bool labels_differ(const std::vector<Place>& places) {
  return std::any_of(places.begin(), places.end(),
                     [&](const Place& place) { return place.label != places.front().label; });
}

}  // namespace weft
