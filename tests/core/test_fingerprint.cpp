// The fingerprint of a tensor: its definition, and that it sees what a checkpoint may get wrong.
#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <vector>

#include "core/fingerprint.hpp"

using namespace weft;

namespace {

using Words = std::vector<std::uint32_t>;

// The definition, bit by bit of one factor; no vectors, no blocks.
std::uint64_t product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  for (; b != 0; b >>= 1, a += a) {
    if (b & 1) sum += a;
  }
  return sum;
}

std::uint64_t word(std::uint64_t n) {
  const std::uint64_t k = product(n + 1, 0x9e3779b97f4a7c15u);
  const std::uint64_t m = product(k ^ (k >> 29), 0xd6e8feb86659fd93u);
  return m ^ (m >> 32);
}

std::uint64_t slow_fingerprint(const Words& bits, index_t first) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const std::uint64_t at = static_cast<std::uint64_t>(first) + i;
    const std::uint64_t key = product(1 | word(1024 + at / 1024), 1 | (word(at % 1024) >> 32));
    sum += product(key, bits[i] ^ (bits[i] >> 16));
  }
  return sum;
}

std::uint64_t fingerprint_of(const Words& bits, index_t first = 0) {
  return fingerprint(bits.data(), static_cast<index_t>(bits.size()), first);
}

Words random_words(std::size_t n, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  Words words(n);
  for (std::uint32_t& x : words) x = static_cast<std::uint32_t>(generator() >> 32);
  return words;
}

}  // namespace

TEST_CASE("fingerprints are those of their definition", "[fingerprint]") {
  for (const std::size_t n : {0, 1, 2, 15, 33, 1023, 1024, 1025, 5000}) {
    for (const index_t first : {index_t{0}, index_t{1}, index_t{1000}, index_t{1} << 40}) {
      INFO(n << " elements from " << first);
      const Words bits = random_words(n, n + 1);
      CHECK(fingerprint_of(bits, first) == slow_fingerprint(bits, first));
    }
  }
  // Computed by another program: checkpoints hold these numbers, they must not change.
  CHECK(fingerprint_of({0x3f800000u}) == 0x4b96f13f80eafa80u);
  CHECK(fingerprint_of({0x3f800000u, 0xc0200000u, 0x0029f83du, 0x7f800000u}, 1022) ==
        0x1a9e108c2088f34cu);
  Words counted(5000);
  for (std::size_t i = 0; i < counted.size(); ++i)
    counted[i] = static_cast<std::uint32_t>(i) * 2654435761u;
  CHECK(fingerprint_of(counted, (index_t{1} << 40) + 7) == 0xeed4d1db49f7f18eu);
}

TEST_CASE("fingerprints of parts add up, however a tensor is cut", "[fingerprint]") {
  const Words bits = random_words(7001, 3);
  const std::uint64_t whole = fingerprint_of(bits);
  std::mt19937_64 generator(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<index_t> cuts{0, 7001};
    for (int i = 0; i < 1 + round; ++i) cuts.push_back(static_cast<index_t>(generator() % 7001));
    std::sort(cuts.begin(), cuts.end());
    std::uint64_t sum = 0;
    for (std::size_t i = cuts.size() - 1; i-- > 0;)
      sum += fingerprint(bits.data() + cuts[i], cuts[i + 1] - cuts[i], cuts[i]);
    REQUIRE(sum == whole);
  }
}

TEST_CASE("fingerprints see every flipped bit", "[fingerprint]") {
  Words bits = random_words(3000, 5);
  const std::uint64_t whole = fingerprint_of(bits);
  for (std::size_t i = 0; i < bits.size(); i += 7) {
    for (int bit = 0; bit < 32; ++bit) {
      bits[i] ^= 1u << bit;
      REQUIRE(fingerprint_of(bits) != whole);
      bits[i] ^= 1u << bit;
    }
  }
}

TEST_CASE("fingerprints see what is in another's place", "[fingerprint]") {
  // Ordinary words, and those that differ in one sign alone: the least that a product keeps.
  for (const bool signs : {false, true}) {
    Words bits = random_words(4096, 6);
    if (signs) {
      for (std::uint32_t& x : bits) x = (x & 0x80000000u) | 0x3f800000u;
    }
    const std::uint64_t whole = fingerprint_of(bits);
    std::mt19937_64 generator(7);
    for (int round = 0; round < 20000; ++round) {
      std::uint32_t& a = bits[generator() % bits.size()];
      std::uint32_t& b = bits[generator() % bits.size()];
      if (a == b) continue;
      std::swap(a, b);
      REQUIRE(fingerprint_of(bits) != whole);
      std::swap(a, b);
    }
    // Everything one place on; two blocks in each other's place; zeros for a stretch.
    Words moved = bits;
    std::rotate(moved.begin(), moved.begin() + 1, moved.end());
    CHECK(fingerprint_of(moved) != whole);
    CHECK(fingerprint_of(bits, 1024) != whole);
    moved = bits;
    std::swap_ranges(moved.begin(), moved.begin() + 1024, moved.begin() + 1024);
    CHECK(fingerprint_of(moved) != whole);
    moved = bits;
    std::fill_n(moved.begin() + 100, 16, 0u);
    CHECK(fingerprint_of(moved) != whole);
  }
}

TEST_CASE("fingerprints of stretches of boxes add up to the tensor's", "[fingerprint]") {
  const index_t rows = 37, width = 1100;
  const Words bits = random_words(static_cast<std::size_t>(rows * width), 8);
  std::mt19937_64 generator(9);
  const Box boxes[] = {{{0, 20}, {0, 300}}, {{0, 20}, {300, width}}, {{20, rows}, {0, width}}};
  std::uint64_t sum = 0;
  for (const Box& box : boxes) {
    Words dense;
    for (index_t row = box.rows.begin; row < box.rows.end; ++row) {
      const auto begin = bits.begin() + row * width;
      dense.insert(dense.end(), begin + box.cols.begin, begin + box.cols.end);
    }
    for (index_t at = 0; at < box.num_elements();) {
      const index_t here =
          std::min<index_t>(1 + static_cast<index_t>(generator() % 2000), box.num_elements() - at);
      sum += fingerprint_in_box(dense.data() + at, box, {at, at + here}, width);
      at += here;
    }
  }
  CHECK(sum == fingerprint_of(bits));
}
