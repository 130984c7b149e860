// Host memory that lasts, for copies of device memory.
#pragma once

#include <memory>

#include "core/tensor.hpp"

namespace weft {

// Aligned to 256 bytes, contents undefined: the arena's where the host can reach device memory;
// else the heap's, which no arena counts.
class HostBlock {
 public:
  HostBlock(Arena& arena, MemoryKind kind, index_t bytes);
  std::byte* data() const { return data_; }
  index_t num_bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* block) const;
  };

  index_t bytes_;
  Tensor shared_;
  std::unique_ptr<std::byte, Free> own_;
  std::byte* data_;
};

}  // namespace weft
