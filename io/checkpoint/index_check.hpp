// Whether an index of a checkpoint agrees with itself, so that whoever reads by it may trust every
// number in it.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_index.hpp"

namespace weft {

// Throws Error(data) unless what an index says holds. `text` is called for its words only where
// they are needed.
struct IndexExpectation {
  const std::string& path;  // of the index

  template <class Text>
  void operator()(bool holds, Text text) const {
    if (!holds) [[unlikely]]
      throw Error(ExitCode::data,
                  fmt::format("{} contradicts itself: {}; use another checkpoint", path, text()));
  }
};

// Throws Error(data) that names `path` and the fault unless all of decode_index's conditions hold.
// n log n in the number of pieces, linear in the number of blocks.
void require_consistent(const CheckpointIndex& index, const std::string& path);

}  // namespace weft
