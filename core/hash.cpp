#include "core/hash.hpp"

#include <fmt/format.h>
// For the CPU that this is built for: twice as fast as the library, which is for all.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace weft {

std::uint64_t hash64(std::string_view text) { return XXH64(text.data(), text.size(), 0); }

std::string Hash128::text() const { return fmt::format("{:016x}{:016x}", high, low); }

Hash128 hash128(const void* bytes, std::size_t size, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(bytes, size, seed);
  return {hash.high64, hash.low64};
}

}  // namespace weft
