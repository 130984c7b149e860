// Which checkpoints a path on the command line means, and which run they belong to.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_folder.hpp"

namespace weft {

struct CheckpointChoice {
  std::vector<CheckpointPlace> candidates;  // newest last; one where the path is a checkpoint's
  std::string run_folder;                   // empty: the checkpoint lies in no run
};

// Local. `path`: a checkpoint's folder, a run folder, or its folder checkpoints; links are
// followed. Throws Error(data) where there is nothing of that kind. What is in a checkpoint is not
// looked at.
CheckpointChoice choose_checkpoint(const std::string& path);

}  // namespace weft
