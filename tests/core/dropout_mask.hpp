// Who is dropped, from global indices alone (EXACT 3.21) and the oracle's own Philox: key (seed,
// stream 5), counter (index / 4, step, layer), word index mod 4.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/range.hpp"
#include "tests/oracle/matrix.hpp"
#include "tests/oracle/philox.hpp"

namespace weft::testing {

inline bool is_kept(std::uint64_t seed, index_t step, index_t layer, index_t index, double rate) {
  const auto word = [](auto number) { return static_cast<std::uint32_t>(number); };
  const oracle::PhiloxKey key{word(seed), word(seed >> 32) | 5u << 24};
  const index_t block = index / 4;
  const oracle::PhiloxCounter words =
      oracle::philox4x32_10({word(block), word(block >> 32), word(step), word(layer)}, key);
  const float uniform = static_cast<float>(words[static_cast<std::size_t>(index % 4)] >> 8);
  return uniform * 0x1p-24f >= static_cast<float>(rate);
}

// [num_rows, features] of 0 and 1: samples first_sample.. of the global batch.
inline oracle::Matrix dropout_mask(std::uint64_t seed, index_t step, index_t layer,
                                   index_t first_sample, index_t num_rows, index_t features,
                                   double rate) {
  oracle::Matrix mask(static_cast<std::size_t>(num_rows), static_cast<std::size_t>(features));
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const index_t index = first_sample * features + static_cast<index_t>(i);
    mask[i] = is_kept(seed, step, layer, index, rate) ? 1.0 : 0.0;
  }
  return mask;
}

}  // namespace weft::testing
