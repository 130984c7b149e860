// Any box of a tensor out of a checkpoint, whatever pieces it was saved in.
#pragma once

#include <cstdint>

#include "io/checkpoint/checkpoint_reader.hpp"

namespace weft {

// The elements of the box, dense, row by row, into `out`: reads and verifies the blocks that hold
// something of it. Throws Error(data) that names file, block and tensor where one is not what was
// written.
void read_box(const Checkpoint& checkpoint, index_t tensor, const Box& box, std::uint32_t* out);

}  // namespace weft
