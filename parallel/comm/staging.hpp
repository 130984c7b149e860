// Scratch memory for messages: blocks that are kept and reused, since fresh pages cost more than
// the copy that fills them. One pool per rank, used by its main thread alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace weft {

class StagingPool {
 public:
  struct Block;  // a piece of memory and its capacity

  // Gives the block back to its pool. The pool must outlive it.
  struct GiveBack {
    StagingPool* pool = nullptr;
    void operator()(Block* block) const noexcept;
  };

  StagingPool();
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // At least `num_bytes`, aligned to 64 bytes, not initialised.
  std::unique_ptr<Block, GiveBack> take(std::size_t num_bytes);

  // Memory held, in use or not: for the account of a rank's memory.
  std::uint64_t bytes_held() const { return bytes_held_; }

 private:
  void give_back(Block* block) noexcept;

  std::vector<std::unique_ptr<Block>> free_;
  std::uint64_t bytes_held_ = 0;
};

struct StagingPool::Block {
  explicit Block(std::size_t num_bytes);
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  std::byte* data;
  std::size_t capacity;
};

using Staging = std::unique_ptr<StagingPool::Block, StagingPool::GiveBack>;

}  // namespace weft
