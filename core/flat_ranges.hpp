// Some ranges of a flat block, and where each lies in memory that holds nothing else: what an owner
// of a part of the parameters keeps for them.
#pragma once

#include <algorithm>
#include <vector>

#include "core/range.hpp"

namespace weft {

class FlatRanges {
 public:
  struct Part {
    Range flat;
    index_t offset;  // in the compact memory
  };

  FlatRanges() = default;
  // Disjoint, in any order; empty ones are left out, neighbours joined.
  explicit FlatRanges(std::vector<Range> ranges);

  const std::vector<Part>& parts() const { return parts_; }  // increasing
  index_t num_elements() const { return parts_.empty() ? 0 : end_of(parts_.back()); }

  // Calls f(flat range, offset of its first element) for each stretch of `range` that is in here.
  template <class F>
  void for_each_in(Range range, const F& f) const {
    auto part = std::upper_bound(parts_.begin(), parts_.end(), range.begin,
                                 [](index_t at, const Part& p) { return at < p.flat.end; });
    for (; part != parts_.end() && part->flat.begin < range.end; ++part) {
      const Range both = intersection(part->flat, range);
      if (!both.empty()) f(both, part->offset + both.begin - part->flat.begin);
    }
  }

 private:
  static index_t end_of(const Part& part) { return part.offset + part.flat.size(); }

  std::vector<Part> parts_;
};

}  // namespace weft
