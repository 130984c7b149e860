// Reads checkpoint files block by block: the one loop behind loading, verifying and comparing.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_index.hpp"

namespace weft {

// Blocks that follow one another in a file.
struct BlockRun {
  std::string path;
  std::span<const BlockRecord> blocks;
};

// Calls use(number of the run, number of the block in it, its bytes) for all blocks in order, while
// a thread reads ahead. Nothing is verified here. Throws Error(data) where a file is missing or
// ends too early.
void read_blocks(
    const std::vector<BlockRun>& runs,
    const std::function<void(std::size_t run, std::size_t block, std::span<const std::byte>)>& use);

}  // namespace weft
