#include "core/fingerprint.hpp"

#include <algorithm>
#include <array>

namespace weft {

namespace {

constexpr index_t block_elements = 1024;

constexpr std::uint64_t word(std::uint64_t n) {
  const std::uint64_t k = (n + 1) * 0x9e3779b97f4a7c15u;
  const std::uint64_t m = (k ^ (k >> 29)) * 0xd6e8feb86659fd93u;
  return m ^ (m >> 32);
}

constexpr std::uint64_t block_key(index_t block) {
  return 1 | word(static_cast<std::uint64_t>(block_elements + block));
}

using InnerKeys = std::array<std::uint32_t, block_elements>;

constexpr InnerKeys inner_keys = [] {
  InnerKeys keys{};
  for (std::size_t j = 0; j < keys.size(); ++j)
    keys[j] = 1 | static_cast<std::uint32_t>(word(j) >> 32);
  return keys;
}();

constexpr bool are_distinct(InnerKeys keys) {
  std::sort(keys.begin(), keys.end());
  return std::adjacent_find(keys.begin(), keys.end()) == keys.end();
}
static_assert(are_distinct(inner_keys));  // else two elements of a block could change places unseen

// Factors of 32 bits: one vector multiplication for each product of 64.
std::uint64_t sum_in_block(const std::uint32_t* bits, const std::uint32_t* keys, index_t n) {
  std::uint64_t sum = 0;
  for (index_t i = 0; i < n; ++i) sum += std::uint64_t{keys[i]} * (bits[i] ^ (bits[i] >> 16));
  return sum;
}

}  // namespace

std::uint64_t fingerprint(const std::uint32_t* bits, index_t n, index_t first) {
  std::uint64_t sum = 0;
  for (index_t done = 0; done < n;) {
    const index_t begin = (first + done) % block_elements;
    const index_t here = std::min(block_elements - begin, n - done);
    sum += block_key((first + done) / block_elements) *
           sum_in_block(bits + done, inner_keys.data() + begin, here);
    done += here;
  }
  return sum;
}

std::uint64_t fingerprint_in_box(const std::uint32_t* bits, const Box& box, Range elements,
                                 index_t width) {
  const index_t cols = box.cols.size();
  // Rows of the whole tensor's width follow one another.
  if (cols == width)
    return fingerprint(bits, elements.size(), box.rows.begin * width + elements.begin);
  std::uint64_t sum = 0;
  for (index_t at = elements.begin; at < elements.end;) {
    const index_t row = at / cols, col = at % cols;
    const index_t here = std::min(cols - col, elements.end - at);
    sum += fingerprint(bits + (at - elements.begin), here,
                       (box.rows.begin + row) * width + box.cols.begin + col);
    at += here;
  }
  return sum;
}

}  // namespace weft
