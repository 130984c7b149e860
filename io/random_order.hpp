// A random order as a function of (seed, stream, round): items sorted by a random number each.
// Every rank gets the same one without a message, and no generator has a state to save.
#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "core/range.hpp"

namespace weft {

// The 64 bits of item `index` in round `round`.
std::uint64_t random_bits(std::uint64_t seed, Stream stream, index_t round, index_t index);

// `items` in order of (random_bits(.., item), item). The order does not depend on how they came.
std::vector<index_t> random_order(const std::vector<index_t>& items, std::uint64_t seed,
                                  Stream stream, index_t round);

}  // namespace weft
