// Philox and what is made of its words, against published values and the oracle's own Philox.
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "core/random.hpp"
#include "tests/oracle/philox.hpp"

using namespace weft;

namespace {

std::array<std::uint32_t, 4> words_of(random::Counter counter, random::Key key) {
  const random::Words words = random::philox(counter, key);
  return {words.word[0], words.word[1], words.word[2], words.word[3]};
}

using Four = std::array<std::uint32_t, 4>;

}  // namespace

TEST_CASE("Random123's known answers for philox4x32-10", "[random]") {
  // Random123 1.14, tests/kat_vectors: nulls, ones, digits of pi.
  CHECK(words_of({{0, 0, 0, 0}}, {{0, 0}}) ==
        Four{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  CHECK(words_of({{~0u, ~0u, ~0u, ~0u}}, {{~0u, ~0u}}) ==
        Four{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(words_of({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}},
                 {{0xa4093822u, 0x299f31d0u}}) ==
        Four{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("the engine's Philox is the oracle's", "[random]") {
  std::mt19937 generator(20240607);
  for (int trial = 0; trial < 2000; ++trial) {
    std::uint32_t c[4], k[2];
    for (auto& word : c) word = static_cast<std::uint32_t>(generator());
    for (auto& word : k) word = static_cast<std::uint32_t>(generator());
    REQUIRE(words_of({{c[0], c[1], c[2], c[3]}}, {{k[0], k[1]}}) ==
            oracle::philox4x32_10({c[0], c[1], c[2], c[3]}, {k[0], k[1]}));
  }
}

TEST_CASE("key and counter take seed, stream and index as documented", "[random]") {
  const std::uint64_t seed = 0x00123456789abcdeull;
  const random::Key key = random::key_of(seed, Stream::dropout);
  CHECK(key.word[0] == 0x789abcdeu);
  CHECK(key.word[1] == 0x05123456u);
  const random::Words words = random::words_at(key, 11, 22, 0x300000004ull);
  const Four expected = oracle::philox4x32_10({4, 3, 22, 11}, {0x789abcdeu, 0x05123456u});
  CHECK(Four{words.word[0], words.word[1], words.word[2], words.word[3]} == expected);
}

TEST_CASE("uniform is in [0, 1) and exact, below is in [0, bound)", "[random]") {
  CHECK(random::uniform(0) == 0.0f);
  CHECK(random::uniform(0xffu) == 0.0f);
  CHECK(random::uniform(0x100u) == 0x1p-24f);
  CHECK(random::uniform(0x80000000u) == 0.5f);
  CHECK(random::uniform(~0u) == 1.0f - 0x1p-24f);
  CHECK(random::below(0, 10) == 0);
  CHECK(random::below(~0u, 10) == 9);
  CHECK(random::below(~0u, 1) == 0);
  CHECK(random::below(0x80000000u, 9) == 4);

  // Mean, and how often each value comes, within five standard deviations.
  constexpr int n = 40000;
  double sum = 0.0;
  int counts[9] = {};
  const random::Key key = random::key_of(3, Stream::probe);
  for (int i = 0; i < n; ++i) {
    const random::Words words = random::words_at(key, 0, 0, static_cast<std::uint64_t>(i));
    sum += static_cast<double>(random::uniform(words.word[0]));
    ++counts[random::below(words.word[1], 9)];
  }
  CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  for (const int count : counts) CHECK(std::abs(count - n / 9.0) < 5 * std::sqrt(n / 9.0));
}
