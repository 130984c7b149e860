// The fingerprint of a tensor's bits: a sum over its elements, so that parts add up in any order
// and however the tensor is cut. It tells equal from unequal tensors on every layout; it is no
// protection against someone who means harm.
#pragma once

#include <cstdint>

#include "core/range.hpp"
#include "core/shard_spec.hpp"

namespace weft {

// Sum modulo 2^64 over i of key(first + i) mixed(bits[i]), where first + i is the element's
// row-major index in the whole tensor:
//
//   mixed(x) = x ^ (x >> 16)
//   key(i) = block(i / 1024) inner(i % 1024)
//   inner(j) = 1 | (word(j) >> 32),  block(b) = 1 | word(1024 + b)
//   word(n) = m ^ (m >> 32),  m = (k ^ (k >> 29)) 0xd6e8feb86659fd93,  k = (n + 1)
//   0x9e3779b97f4a7c15
//
// with k, m and key modulo 2^64. Keys are odd: one changed element always changes the sum. So do
// two unequal elements that change places within 1024; whether another fault does is left to
// chance, of 2^-47 to miss where two signs change places and less elsewhere. One core does 20 GB/s
// from its cache and 7 GB/s from memory.
std::uint64_t fingerprint(const std::uint32_t* bits, index_t n, index_t first);

// What `elements` of `box`, counted row-major in the box, add to the fingerprint of their tensor,
// whose rows are `width` long. `bits` are those of the elements.
std::uint64_t fingerprint_in_box(const std::uint32_t* bits, const Box& box, Range elements,
                                 index_t width);

}  // namespace weft
