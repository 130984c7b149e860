// What those who compute get handed: the device, its memory, the trace and the rules of arithmetic.
// Holds no communicators.
#pragma once

#include <cstdint>

#include "core/arena.hpp"
#include "core/device.hpp"
#include "core/range.hpp"
#include "core/trace.hpp"

namespace weft {

// The part of a plan that kernels need to know about exact mode.
struct Numerics {
  index_t num_pieces = 1;        // pieces of every tensor-parallel dim
  index_t num_token_blocks = 1;  // parts in which rows of a microbatch are summed (EXACT 3.4)
  // Those whose rows this rank sums: its own with sequence parallel, else all. Consecutive.
  Range token_blocks{0, num_token_blocks};
  std::uint64_t seed = 1;
};

struct Context {
  Device device;
  Arena arena;
  Trace trace;
  Numerics numerics;

  Context(int num_threads, const Numerics& rules) : device(num_threads), numerics(rules) {}
};

}  // namespace weft
