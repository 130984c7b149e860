#include "parallel/comm/staging.hpp"

#include <algorithm>
#include <new>

namespace weft {

namespace {

// A cache line: copies between blocks that are aligned alike are several times faster than others.
constexpr std::align_val_t alignment{64};

}  // namespace

StagingPool::Block::Block(std::size_t num_bytes)
    : data(static_cast<std::byte*>(::operator new(num_bytes, alignment))), capacity(num_bytes) {}

StagingPool::Block::~Block() { ::operator delete(data, alignment); }

void StagingPool::GiveBack::operator()(Block* block) const noexcept { pool->give_back(block); }

StagingPool::StagingPool() = default;
StagingPool::~StagingPool() = default;

Staging StagingPool::take(std::size_t num_bytes) {
  const std::size_t wanted = (std::max<std::size_t>(num_bytes, 1) + 4095) / 4096 * 4096;
  auto best = free_.end();
  for (auto block = free_.begin(); block != free_.end(); ++block) {
    // Not a far bigger one: somebody else will want that.
    if ((*block)->capacity < wanted || (*block)->capacity > 2 * wanted) continue;
    if (best == free_.end() || (*block)->capacity < (*best)->capacity) best = block;
  }
  if (best == free_.end()) {
    auto block = std::make_unique<Block>(wanted);
    free_.reserve(free_.capacity() + 1);  // so that give_back never allocates
    bytes_held_ += wanted;
    return Staging(block.release(), GiveBack{this});
  }
  Block* const block = best->release();
  free_.erase(best);
  return Staging(block, GiveBack{this});
}

void StagingPool::give_back(Block* block) noexcept { free_.emplace_back(block); }

}  // namespace weft
