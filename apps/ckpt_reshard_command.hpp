// `weft ckpt reshard`: a checkpoint as another layout would have written it. No ranks, no device.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

struct CkptReshardOptions {
  std::string path = {};                    // a checkpoint
  std::string to = {};                      // the new one's folder, not there yet
  std::optional<index_t> num_shards = {};   // so many, even ones; else by a plan's layout:
  std::string plan_path = {};               // empty: the plan in the checkpoint
  std::vector<std::string> overrides = {};  // of it
  bool json = false;
};

// Returns 0. Throws Error(data) where the source is damaged, Error(usage) where the destination is
// there or the plan is of another model; then nothing is made.
int ckpt_reshard(const CkptReshardOptions& options, std::ostream& text, std::ostream& out);

}  // namespace weft
