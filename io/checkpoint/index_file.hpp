// The last two files of a checkpoint, by which it is one: index.h5 and MANIFEST.
#pragma once

#include <string>

#include "io/checkpoint/checkpoint_index.hpp"

namespace weft {

// What a manifest tells people.
struct ManifestTexts {
  std::string program;
  std::string plan_name;
  std::string layout;
};

// Writes both into `folder`, where the shards are, synced; the index is read as a resume will read
// it before, since what cannot be loaded must not be committed. Throws Error(failed) where the
// system refuses, Error(data) where the index contradicts itself.
void write_index(const std::string& folder, const CheckpointIndex& index,
                 const ManifestTexts& texts);

}  // namespace weft
