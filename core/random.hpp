// Numbers from indices: the counter-based generator Philox 4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). A number is a function of (seed, stream, index); there is
// no generator object and so no state to save, to split over ranks or to get out of step.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace weft {

// What a number is used for. Streams never share numbers. Values are part of the result of a plan:
// append, never renumber.
enum class Stream : std::uint32_t {
  split = 1,         // which official training images form the validation part
  permutation = 2,   // order of an epoch
  augmentation = 3,  // crop offsets and flips
  initial = 4,       // initial parameters
  dropout = 5,       // dropout masks
  synthetic = 6,     // procedural data
  probe = 7,         // start-up probes and benchmarks
  rare = 8,          // samples of a rare class, drawn more often than they are there
  batches = 9,       // order of an epoch's batches, where these were grouped by length
};

namespace random {

struct Words {
  std::uint32_t word[4];
};

struct Counter {
  std::uint32_t word[4];
};

struct Key {
  std::uint32_t word[2];
};

WEFT_HOST_DEVICE inline Words philox(Counter counter, Key key) {
  std::uint32_t c0 = counter.word[0], c1 = counter.word[1], c2 = counter.word[2],
                c3 = counter.word[3];
  std::uint32_t k0 = key.word[0], k1 = key.word[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// The key of a plan's seed and a stream. The stream sits in the upper bits of the second word, so
// seeds up to 2^56 - 1 give distinct keys; the plan refuses larger ones.
WEFT_HOST_DEVICE inline Key key_of(std::uint64_t seed, Stream stream) {
  return {{static_cast<std::uint32_t>(seed),
           static_cast<std::uint32_t>(seed >> 32) | (static_cast<std::uint32_t>(stream) << 24)}};
}

// The four words at 64-bit position `index` of the sub-sequence (`high`, `low`).
WEFT_HOST_DEVICE inline Words words_at(Key key, std::uint32_t high, std::uint32_t low,
                                       std::uint64_t index) {
  return philox(
      {{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), low, high}},
      key);
}

// [0, 1) with 24 bits: exact in f32.
WEFT_HOST_DEVICE inline float uniform(std::uint32_t word) {
  return static_cast<float>(word >> 8) * (1.0f / 16777216.0f);
}

// An integer in [0, bound), by multiplication; its bias is below bound / 2^32.
WEFT_HOST_DEVICE inline std::uint32_t below(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>((std::uint64_t{word} * bound) >> 32);
}

}  // namespace random
}  // namespace weft
