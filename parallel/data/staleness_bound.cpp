#include "parallel/data/staleness_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "core/error.hpp"

namespace weft {

StalenessBound::StalenessBound(int num_workers, index_t limit)
    : limit_(limit), based_on_(static_cast<std::size_t>(num_workers), 0) {
  require(
      limit >= num_workers - 1, ExitCode::usage,
      fmt::format("--max-staleness: expected {} or more with {} workers, which all begin on the "
                  "same values; found {}",
                  num_workers - 1, num_workers, limit));
}

bool StalenessBound::may_apply(int worker) const {
  std::vector<index_t> bases;
  for (std::size_t other = 0; other < based_on_.size(); ++other) {
    if (other != static_cast<std::size_t>(worker) && based_on_[other])
      bases.push_back(*based_on_[other]);
  }
  std::sort(bases.begin(), bases.end());
  // How stale each becomes where they are applied next, the first to fall due first.
  for (std::size_t k = 0; k < bases.size(); ++k) {
    if (version_ + 1 + static_cast<index_t>(k) - bases[k] > limit_) return false;
  }
  return true;
}

index_t StalenessBound::apply(int worker) {
  assert(may_apply(worker));
  std::optional<index_t>& based_on = based_on_[static_cast<std::size_t>(worker)];
  const index_t staleness = version_ - based_on.value();
  ++version_;
  based_on = version_;
  return staleness;
}

}  // namespace weft
