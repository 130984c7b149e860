// Between boxes of tensors, as files hold them, and a rank's memory: what of a box this rank keeps,
// and where. A rank keeps all values of its pieces, and of the optimizer's moments those it owns.
//
//   a box [2, 6]        what a rank that owns columns 2 and 3 keeps of it: two parts
//   | . . # # . . |     {position 2, at .., length 2}
//   | . . # # . . |     {position 8, at .., length 2}
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/flat_ranges.hpp"
#include "core/logical_tensor.hpp"

namespace weft {

enum class Residence : std::uint8_t {
  device,
  host  // whatever the device's memory is: no copy of it needs Kokkos
};

// One number for each element of `ranges` of the flat blocks, where `ranges` says.
struct HeldNumbers {
  const FlatRanges& ranges;
  float* data;
  Residence residence = Residence::device;
};

// Consecutive elements of a box, row by row, that are kept consecutively.
struct BoxPart {
  index_t position = 0;  // first element in the box, row-major
  index_t at = 0;        // first element in HeldNumbers::data
  index_t length = 0;
  friend bool operator==(const BoxPart&, const BoxPart&) = default;
};

// What a rank that keeps `ranges` has of elements `elements` (row-major) of any box of a
// parameter's tensor: each element once, piece by piece of the parameter, in each by increasing
// position.
std::vector<BoxPart> kept_parts(const Parameter& parameter, const TensorBox& box, Range elements,
                                const FlatRanges& ranges);

// The same where it lies: use(part, its bits), host memory until it returns. Parts are as above.
void view_box(const Parameter& parameter, const TensorBox& box, Range elements,
              const HeldNumbers& from,
              const std::function<void(const BoxPart& part, const std::uint32_t* bits)>& use);

// Copy what is kept of elements `elements` of `box` into their places in `dense`, or out of them.
// `dense` is host memory of any alignment, its first element is number elements.begin of the box.
// What is not kept stays as it is, on both sides. Return how many elements they copied.
index_t gather_box(const Parameter& parameter, const TensorBox& box, Range elements,
                   const HeldNumbers& from, void* dense);
index_t scatter_box(const Parameter& parameter, const TensorBox& box, Range elements,
                    const void* dense, const HeldNumbers& to);

}  // namespace weft
