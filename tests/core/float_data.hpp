// Floats for tests: ordinary random ones, and hostile ones that show any other order of additions
// (EXACT 7.2). Also how two blocks of floats are compared: by their bits.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace weft::testing {

using Floats = std::vector<float>;

// Uniform in [low, high).
inline Floats random_floats(std::size_t n, std::uint64_t seed, float low = -1.0f,
                            float high = 1.0f) {
  std::mt19937_64 generator(seed);
  Floats values(n);
  for (float& value : values) {
    value = low + (high - low) * (static_cast<float>(generator() >> 40) * 0x1p-24f);
  }
  return values;
}

// Values that absorb, cancel or vanish when they are added in another order.
inline Floats hostile_floats(std::size_t n, std::uint64_t seed) {
  constexpr float choices[] = {1.0f,  0x1p-24f, -1.0f, 1e8f,      -1e8f,          -0.0f,
                               +0.0f, 3.0f,     1.0f,  0x1p-149f, -3 * 0x1p-149f, -0x1p-24f};
  std::mt19937_64 generator(seed);
  Floats values(n);
  for (float& value : values) value = choices[(generator() >> 33) % std::size(choices)];
  return values;
}

template <class T>
std::string bits_text(T value) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::to_string(value) + " (bits " + std::to_string(std::bit_cast<Bits>(value)) + ")";
}

// "" where all bits are equal, else the first place where they are not.
template <class T>
std::string bit_difference(const T* got, const T* expected, std::size_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::bit_cast<Bits>(got[i]) == std::bit_cast<Bits>(expected[i])) continue;
    return "element " + std::to_string(i) + " of " + std::to_string(n) + " is " +
           bits_text(got[i]) + ", not " + bits_text(expected[i]);
  }
  return "";
}

template <class T>
std::string bit_difference(const std::vector<T>& got, const std::vector<T>& expected) {
  if (got.size() != expected.size()) {
    return std::to_string(got.size()) + " elements, not " + std::to_string(expected.size());
  }
  return bit_difference(got.data(), expected.data(), got.size());
}

}  // namespace weft::testing
