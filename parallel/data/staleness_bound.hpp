// Which gradient of an asynchronous run may be applied now, such that none is ever staler than a
// limit. A gradient's staleness is the number of updates between the values that it was computed on
// and the values that it is applied to (Ho et al. 2013 bound it by clocks; here it is bounded
// update by update).
//
// Worker i, which computes on version b(i), must be applied at version b(i) + limit at the latest.
// An update takes one version, so of n outstanding workers the k-th to fall due, from 0, must not
// be due before version v + k. Another worker goes first only where the rest can still be in time.
// The first to fall due always may, so nobody waits for ever.
#pragma once

#include <optional>
#include <vector>

#include "core/range.hpp"

namespace weft {

class StalenessBound {
 public:
  // All workers compute on version 0. Throws Error(usage) where limit < num_workers - 1: all of
  // them begin on the same values, so the last one of the first round is as stale as that.
  StalenessBound(int num_workers, index_t limit);

  index_t version() const { return version_; }
  index_t limit() const { return limit_; }
  // Whether the worker's gradient may be applied to the newest version. It is outstanding.
  bool may_apply(int worker) const;
  // Applies it, which makes the next version; the worker goes on from that one. Returns the
  // gradient's staleness.
  index_t apply(int worker);
  // The worker computes no more; after its apply().
  void retire(int worker) { based_on_[static_cast<std::size_t>(worker)].reset(); }

 private:
  index_t limit_;
  index_t version_ = 0;
  std::vector<std::optional<index_t>> based_on_;  // of each worker; none: it has retired
};

}  // namespace weft
