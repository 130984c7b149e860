// Philox 4x32-10, written from the paper and apart from the engine's: Salmon, Moraes, Dror and
// Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011, section 3.3 and table 2. Only the
// bijection; how indices become counters is said where it is tested.
#pragma once

#include <array>
#include <cstdint>

namespace weft::oracle {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// One round: two 32 x 32 -> 64 bit products, whose high halves are mixed with the odd words and the
// key and whose low halves replace the odd words.
//   (L0, R0, L1, R1) = c;  c' = (hi(M1 L1) ^ R0 ^ k0, lo(M1 L1), hi(M0 L0) ^ R1 ^ k1, lo(M0 L0))
inline PhiloxCounter philox_round(const PhiloxCounter& c, const PhiloxKey& k) {
  const std::uint64_t product0 = 0xD2511F53ull * c[0];
  const std::uint64_t product1 = 0xCD9E8D57ull * c[2];
  const auto high = [](std::uint64_t p) { return static_cast<std::uint32_t>(p >> 32); };
  const auto low = [](std::uint64_t p) { return static_cast<std::uint32_t>(p & 0xFFFFFFFFull); };
  return {high(product1) ^ c[1] ^ k[0], low(product1), high(product0) ^ c[3] ^ k[1], low(product0)};
}

// Ten rounds; between rounds the key moves on by the golden ratio and sqrt(3) - 1 (Weyl sequence).
inline PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  constexpr int num_rounds = 10;
  for (int round = 0; round < num_rounds; ++round) {
    if (round > 0) {
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    counter = philox_round(counter, key);
  }
  return counter;
}

}  // namespace weft::oracle
