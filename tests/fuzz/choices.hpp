// Bytes as a row of decisions, for inputs with a structure; and what all entries share.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace weft::test {

class Choices {
 public:
  explicit Choices(std::string_view bytes) : rest_(bytes) {}

  bool is_at_end() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return byte;
  }
  std::size_t below(std::size_t n) { return n <= 1 ? 0 : byte() % n; }
  // What a number may wrongly be: near what it was, at an edge, or anything.
  std::int64_t instead_of(std::int64_t was) {
    constexpr std::int64_t most = INT64_MAX;
    const std::uint8_t kind = byte();
    if (kind < 128) return static_cast<std::int64_t>(static_cast<std::uint64_t>(was) + kind - 64);
    if (kind < 192) return kind - 128;
    switch (kind % 8) {
      case 0:
        return most;
      case 1:
        return INT64_MIN;
      case 2:
        return -1;
      case 3:
        return most / 4 + 1;
      case 4:
        return std::int64_t{1} << 32;
      case 5:
        return most - byte();
      default:
        return any();
    }
  }
  std::int64_t any() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return static_cast<std::int64_t>(value);
  }

 private:
  std::string_view rest_;
};

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::logic_error(what);
}

// Whether the reader took it; a refusal must have this code and say something.
template <class Read>
bool is_taken(ExitCode refusal, Read&& read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    expect(error.code() == refusal, std::string("refused with another exit code: ") + error.what());
    expect(*error.what() != '\0', "refused without a word");
    return false;
  }
}

}  // namespace weft::test
