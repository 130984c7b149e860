// UTF-8 by the table of its well-formed sequences; see the header.
#include "io/tables/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace weft {

namespace {

// Bytes of the well-formed sequence that `rest` begins with; 0 where it begins with none.
std::size_t sequence_length(std::string_view rest) {
  const auto byte = [&](std::size_t i) {
    return i < rest.size() ? static_cast<std::uint8_t>(rest[i]) : std::uint8_t{0};
  };
  const auto is_tail = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const std::uint8_t first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return is_tail(1) ? 2 : 0;
  if (!is_tail(1) || !is_tail(2)) return 0;
  if (first < 0xf0) {
    const bool is_overlong = first == 0xe0 && second < 0xa0;
    const bool is_surrogate = first == 0xed && second >= 0xa0;
    return is_overlong || is_surrogate ? 0 : 3;
  }
  if (first > 0xf4 || !is_tail(3)) return 0;
  const bool is_overlong = first == 0xf0 && second < 0x90;
  const bool is_too_large = first == 0xf4 && second >= 0x90;
  return is_overlong || is_too_large ? 0 : 4;
}

}  // namespace

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return at;
}

std::size_t first_not_plain(std::string_view text) {
  constexpr std::uint64_t ones = 0x0101010101010101, tops = 0x8080808080808080;
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    // A byte's top bit is set where the byte is 0 or has it already; borrows only pass beyond a 0.
    if (((word | (word - ones)) & tops) != 0) break;
  }
  while (at < text.size() && text[at] != '\0' && static_cast<std::uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace weft
