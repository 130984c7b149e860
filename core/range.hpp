// Half-open index ranges, and the one rule by which weft cuts anything in parts (EXACT section 1).
// Shards over tp ranks, lanes over dp ranks, features over shards, rows over token blocks: all of
// them are cut by `part_of`, so who owns what follows from three integers and never from a message.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace weft {

using index_t = std::int64_t;

struct Range {
  index_t begin = 0;
  index_t end = 0;

  WEFT_HOST_DEVICE constexpr index_t size() const { return end - begin; }
  WEFT_HOST_DEVICE constexpr bool empty() const { return end <= begin; }
  WEFT_HOST_DEVICE constexpr bool contains(index_t i) const { return begin <= i && i < end; }
  friend constexpr bool operator==(const Range&, const Range&) = default;
};

// The range rule: part `part` of `num_parts` of `length` items is
// [floor(part*length/num_parts), floor((part+1)*length/num_parts)).
WEFT_HOST_DEVICE constexpr Range part_of(index_t part, index_t num_parts, index_t length) {
  return {part * length / num_parts, (part + 1) * length / num_parts};
}

// The part that holds item `item`: the inverse of part_of. A loop of at most two steps.
WEFT_HOST_DEVICE constexpr index_t part_holding(index_t item, index_t num_parts, index_t length) {
  index_t part = item * num_parts / length;
  while (!part_of(part, num_parts, length).contains(item))
    part += item < part_of(part, num_parts, length).begin ? -1 : 1;
  return part;
}

WEFT_HOST_DEVICE constexpr Range intersection(Range a, Range b) {
  const index_t begin = a.begin > b.begin ? a.begin : b.begin;
  const index_t end = a.end < b.end ? a.end : b.end;
  return {begin, end < begin ? begin : end};
}

// `value` rounded up to a multiple of `step`.
WEFT_HOST_DEVICE constexpr index_t round_up(index_t value, index_t step) {
  return (value + step - 1) / step * step;
}

}  // namespace weft
