// Numbers in four groups by bounds that are learnt from training samples: a quarter of those lies
// in each, as far as equal numbers allow.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"

namespace weft {

class QuartileGroups {
 public:
  // The k-th bound, k = 1, 2, 3, is the smallest of the n numbers `training` that k n / 4 of them
  // do not exceed (the "inverted CDF" of Hyndman and Fan 1996, definition 1): always one of them,
  // so nothing is rounded. Equal bounds are one. Without numbers there is one group.
  explicit QuartileGroups(std::vector<double> training);

  const std::vector<double>& bounds() const { return bounds_; }  // increasing
  index_t num_groups() const { return std::ssize(bounds_) + 1; }
  // Group g has the numbers above bound g - 1, up to and with bound g.
  index_t group_of(double value) const;
  // "age <= 32", "32 < age <= 38", "38 < age <= 47", "age > 47"; of a single group `what`.
  std::vector<std::string> names(std::string_view what) const;

 private:
  std::vector<double> bounds_;
};

}  // namespace weft
