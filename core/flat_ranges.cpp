#include "core/flat_ranges.hpp"

#include <cassert>

namespace weft {

FlatRanges::FlatRanges(std::vector<Range> ranges) {
  std::erase_if(ranges, [](Range range) { return range.empty(); });
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.begin < b.begin; });
  for (const Range range : ranges) {
    assert(parts_.empty() || parts_.back().flat.end <= range.begin);
    if (!parts_.empty() && parts_.back().flat.end == range.begin) {
      parts_.back().flat.end = range.end;
    } else {
      parts_.push_back({range, num_elements()});
    }
  }
}

}  // namespace weft
