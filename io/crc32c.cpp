#include "io/crc32c.hpp"

#include <array>

namespace weft {

namespace {

// The polynomial 0x1EDC6F41, its bits in reverse: what a byte adds to the remainder.
constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) ? 0x82F63B78U : 0U);
    table[byte] = rest;
  }
  return table;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<std::uint32_t, 256> table = make_table();
  std::uint32_t rest = ~0U;
  for (const char c : bytes)
    rest = (rest >> 8) ^ table[(rest ^ static_cast<unsigned char>(c)) & 0xFFU];
  return ~rest;
}

}  // namespace weft
