#include "io/quartile_groups.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft {

QuartileGroups::QuartileGroups(std::vector<double> training) {
  if (training.empty()) return;
  std::sort(training.begin(), training.end());
  const index_t n = std::ssize(training);
  for (index_t k = 1; k <= 3; ++k) {
    const index_t not_above = (k * n + 3) / 4;  // k n / 4, rounded up
    bounds_.push_back(training[static_cast<std::size_t>(not_above - 1)]);
  }
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
}

index_t QuartileGroups::group_of(double value) const {
  return std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
}

std::vector<std::string> QuartileGroups::names(std::string_view what) const {
  if (bounds_.empty()) return {std::string(what)};
  std::vector<std::string> names = {fmt::format("{} <= {}", what, bounds_.front())};
  for (std::size_t i = 1; i < bounds_.size(); ++i)
    names.push_back(fmt::format("{} < {} <= {}", bounds_[i - 1], what, bounds_[i]));
  names.push_back(fmt::format("{} > {}", what, bounds_.back()));
  return names;
}

}  // namespace weft
