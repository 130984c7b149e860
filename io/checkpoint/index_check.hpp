// Whether an index of a checkpoint agrees with itself, so that whoever reads by it may trust every
// number in it.
#pragma once

#include <string>

#include "io/checkpoint/checkpoint_index.hpp"

namespace weft {

// Throws Error(data) that names `path` and the fault unless all of decode_index's conditions hold.
// n log n in the number of pieces, linear in the number of blocks.
void require_consistent(const CheckpointIndex& index, const std::string& path);

}  // namespace weft
