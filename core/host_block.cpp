#include "core/host_block.hpp"

#include <cstdlib>
#include <new>

#include "core/device.hpp"

namespace weft {

void HostBlock::Free::operator()(std::byte* block) const { std::free(block); }

HostBlock::HostBlock(Arena& arena, MemoryKind kind, index_t bytes) : bytes_(bytes) {
  if constexpr (device_memory_is_host) {
    shared_ = Tensor(arena, kind, {(bytes + 3) / 4});
    data_ = static_cast<std::byte*>(shared_.raw());
  } else {
    const auto rounded = (static_cast<std::size_t>(bytes) + 255) / 256 * 256;
    own_.reset(static_cast<std::byte*>(std::aligned_alloc(256, rounded)));
    if (!own_ && bytes > 0) throw std::bad_alloc();
    data_ = own_.get();
  }
}

}  // namespace weft
