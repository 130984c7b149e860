// A file in which people see whole tensors of a checkpoint: HDF5 datasets of the logical shapes
// that show the pieces in the shards. For looking with other programs; weft reads none, and what is
// seen is not checked.
#pragma once

#include <cstdint>
#include <string>

#include "io/checkpoint/checkpoint_reader.hpp"

namespace weft {

// Where it goes unless told otherwise: RUN/view-step-000000200.h5 for a checkpoint of a run, else
// beside its folder.
std::string default_view_path(const std::string& checkpoint);

// Writes a new file of `/<kind>/<tensor>` for all tensors of the checkpoint, whole or not at all.
// It names the shards by their places as seen from its own, so that both may be moved together.
// Returns its size. Throws Error(usage) where something is there already or the place is inside of
// the checkpoint's folder, Error(failed) where the system refuses.
std::uint64_t write_view(const Checkpoint& checkpoint, const std::string& path);

}  // namespace weft
