// Which checkpoints of a folder stay once a newer one is sound, and the removal of the others. What
// makes one good is not known here: who does comes with an order of steps.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/range.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"

namespace weft {

struct Retention {
  index_t keep = 2;                  // newest ones that stay
  index_t keep_every = 0;            // and those whose step is a multiple of it; 0: none
  index_t keep_best = 0;             // and so many of `ranked`, the first that are there and sound
  std::vector<index_t> ranked = {};  // steps, the best first; of some there is no checkpoint

  bool keeps_step(index_t step) const { return keep_every > 0 && step % keep_every == 0; }
};

// Whether its manifest and index are whole: what can be told without reading all of it.
bool opens(const CheckpointPlace& place);

// The steps that stay as the best of `places`. `is_sound` is asked of as few as can be.
std::set<index_t> best_steps(const Retention& retention, const std::vector<CheckpointPlace>& places,
                             const std::function<bool(const CheckpointPlace&)>& is_sound);

// Removes what is older than the newest checkpoints up to step `newest`, which is known to be
// sound, and nothing else of `retention`; those that do not open are not counted, pinned ones
// (PINS) stay. Only for the holder of the lease. Throws Error(failed), and Error(data) where PINS
// cannot be read: then nothing goes.
void retire_older(const std::string& folder, index_t newest, const Retention& retention);

}  // namespace weft
