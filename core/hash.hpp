// Hashes: of names, of files' text, and the 128-bit sums that compare states and losses across
// layouts. XXH3 does the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// Stable over versions and machines: initial values depend on it.
std::uint64_t hash64(std::string_view text);

struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  // Order does not matter: addition modulo 2^128.
  Hash128& operator+=(const Hash128& other) {
    const std::uint64_t sum = low + other.low;
    high += other.high + (sum < low ? 1 : 0);
    low = sum;
    return *this;
  }
  friend bool operator==(const Hash128&, const Hash128&) = default;
  std::string text() const;  // 32 hexadecimal digits
};

Hash128 hash128(const void* bytes, std::size_t size, std::uint64_t seed = 0);

}  // namespace weft
