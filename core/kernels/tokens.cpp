#include "core/kernels/tokens.hpp"

#include "core/kernels/reduce.hpp"

namespace weft::kernels {

namespace {

// The features `features` of one token whose sample's pixels begin at `pixels`, in runs of
// neighbours: pixels of one row of the patch.
KOKKOS_INLINE_FUNCTION void take_patch(const float* pixels, const PatchShape& shape, index_t token,
                                       Range features, float* out) {
  const index_t p = shape.patch, per_side = shape.side / p;
  const index_t top = token / per_side * p, left = token % per_side * p;
  for (index_t f = features.begin; f < features.end;) {
    const index_t channel = f / (p * p), y = f / p % p, x = f % p;
    const index_t to_row_end = p - x, to_end = features.end - f;
    const index_t run = to_row_end < to_end ? to_row_end : to_end;
    const float* from = pixels + (channel * shape.side + top + y) * shape.side + left + x;
    for (index_t i = 0; i < run; ++i) out[i] = from[i];
    f += run;
    out += run;
  }
}

// What a sum over a sample's tokens is multiplied with; of none there is no mean.
KOKKOS_INLINE_FUNCTION float inverse_length(index_t length) {
  return length > 0 ? 1.0f / static_cast<float>(length) : 0.0f;
}

}  // namespace

void take_patches(Context& context, const float* pixels, const PatchShape& shape,
                  index_t num_samples, Range features, float* out) {
  const index_t tokens = shape.tokens(), num_pixels = shape.pixels();
  context.device.parallel_for(
      "weft/take_patches", num_samples * tokens, KOKKOS_LAMBDA(index_t row) {
        take_patch(pixels + row / tokens * num_pixels, shape, row % tokens, features,
                   out + row * features.size());
      });
}

void add_positions(Context& context, const float* x, const float* position, Range rows,
                   index_t tokens, index_t n, float* y) {
  context.device.parallel_for(
      "weft/add_positions", rows.size(), KOKKOS_LAMBDA(index_t r) {
        const float* added = position + (rows.begin + r) % tokens * n;
        for (index_t j = 0; j < n; ++j) y[r * n + j] = x[r * n + j] + added[j];
      });
}

void mean_tokens(Context& context, const float* x, index_t num_samples, index_t tokens, index_t n,
                 const std::int32_t* lengths, float* y) {
  const index_t groups = (n + column_group - 1) / column_group;
  context.device.parallel_for(
      "weft/mean_tokens", num_samples * groups, KOKKOS_LAMBDA(index_t i) {
        const index_t sample = i / groups;
        const index_t first = i % groups * column_group;
        const index_t width = n - first < column_group ? n - first : column_group;
        const index_t length = lengths ? lengths[sample] : tokens;
        const float inverse = inverse_length(length);
        float sums[column_group];
        sum_column_group(x + sample * tokens * n + first, n, {0, length}, width, sums, false);
        for (index_t j = 0; j < width; ++j) y[sample * n + first + j] = sums[j] * inverse;
      });
}

void mean_tokens_backward(Context& context, const float* dy, Range rows, index_t tokens, index_t n,
                          const std::int32_t* lengths, float* dx) {
  context.device.parallel_for(
      "weft/mean_tokens_backward", rows.size(), KOKKOS_LAMBDA(index_t r) {
        const index_t sample = (rows.begin + r) / tokens, token = (rows.begin + r) % tokens;
        const index_t length = lengths ? lengths[sample] : tokens;
        const float inverse = inverse_length(length);
        const float* from = dy + sample * n;
        for (index_t j = 0; j < n; ++j) dx[r * n + j] = token < length ? from[j] * inverse : 0.0f;
      });
}

}  // namespace weft::kernels
