// Kernels that know which token of which sample a row is. Rows are sample-major: row = sample *
// tokens + token; a rank may hold a range of them, which begins anywhere inside a sample.
#pragma once

#include <cstdint>

#include "core/context.hpp"

namespace weft::kernels {

// How a square image of some planes falls into square patches. A patch is a token; tokens go row by
// row over the image, and a token's features are its pixels as (channel, y, x).
struct PatchShape {
  index_t channels = 3;
  index_t side = 32;  // of the image, in pixels
  index_t patch = 4;  // side of a patch; divides the image's

  index_t pixels() const { return channels * side * side; }
  index_t tokens() const { return side / patch * (side / patch); }
  index_t features() const { return channels * patch * patch; }
};

// out[t, :] = features `features` of token t. pixels: [num_samples, channels, side, side]; out:
// [num_samples * tokens, features.size()].
void take_patches(Context& context, const float* pixels, const PatchShape& shape,
                  index_t num_samples, Range features, float* out);

// y[row, :] = x[row, :] + position[token of row, :] for the rows `rows`, which x and y hold alone;
// position: [tokens, n].
void add_positions(Context& context, const float* x, const float* position, Range rows,
                   index_t tokens, index_t n, float* y);

// y[sample, :] = the sum over its tokens, in sequence, times 1 / tokens. x: [num_samples * tokens,
// n]; y: [num_samples, n]. Where `lengths` ([num_samples] in device memory) is given, only each
// sample's first `length` tokens count, and the others are not read; a sample of none gives 0.
void mean_tokens(Context& context, const float* x, index_t num_samples, index_t tokens, index_t n,
                 const std::int32_t* lengths, float* y);
// dx[row, :] = dy[sample of row, :] / tokens for the rows `rows`, which dx holds alone; with
// `lengths`, dy / length, and +0 for tokens behind it.
void mean_tokens_backward(Context& context, const float* dy, Range rows, index_t tokens, index_t n,
                          const std::int32_t* lengths, float* dx);

}  // namespace weft::kernels
