// The fingerprint of a tensor's bits: a sum over its elements, so that parts add up in any order and
// however the tensor is cut. It tells equal from unequal tensors on every layout; it is no
// protection against someone who means harm.
#pragma once

#include <cstdint>

#include "core/range.hpp"

namespace weft {

// Sum modulo 2^64 over i of key(first + i) bits[i]. key(n) = 1 | (m ^ (m >> 29)) with m =
// (n + 1) 0x9e3779b97f4a7c15, all modulo 2^64, n the element's row-major index in the whole tensor.
// Odd keys: one changed element always changes the sum.
std::uint64_t fingerprint(const std::uint32_t* bits, index_t n, index_t first);

}  // namespace weft
