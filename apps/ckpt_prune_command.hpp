// `weft ckpt prune`: which of a run's checkpoints stay, and the removal of the others. No ranks, no
// device.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

struct CkptPruneOptions {
  std::string path = {};              // a run folder or its checkpoints
  index_t keep = 0;                   // newest ones that verify
  std::optional<index_t> every = {};  // and those whose step is a multiple; else the plan's
  std::vector<index_t> pins = {};     // and these steps, from now on: they go to PINS
  bool dry_run = false;
  bool json = false;
};

// Reads the newest checkpoints, byte by byte, until `keep` of them are sound; what is older goes,
// unless it is pinned, of an every-th step, or one of the best that the plan in the run folder
// wants kept: of these the first that are sound. Damaged ones that are met stay, and are named:
// only what has `keep` sound ones that are newer is removed, so that nothing is where fewer are
// there. The run's lease is held meanwhile; a dry run takes none, and changes nothing.
// Returns 0, or 5 where a damaged one was met. Throws Error(usage) where a run writes there or a
// pin is of no step that is there, or the run folder's plan cannot be read; Error(data) where there
// is no checkpoint or PINS cannot be read; Error(failed) where the file system has no locks. Then
// nothing was removed.
int ckpt_prune(const CkptPruneOptions& options, std::ostream& text, std::ostream& out);

}  // namespace weft
