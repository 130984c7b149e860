#include "core/kernels/elementwise.hpp"

#include "core/kernels/math.hpp"
#include "core/random.hpp"

namespace weft::kernels {

void copy(Context& context, const float* from, float* to, index_t n) {
  context.device.parallel_for(
      "weft/copy", n, KOKKOS_LAMBDA(index_t i) { to[i] = from[i]; });
}

void add(Context& context, const float* a, const float* b, float* out, index_t n) {
  context.device.parallel_for(
      "weft/add", n, KOKKOS_LAMBDA(index_t i) { out[i] = a[i] + b[i]; });
}

namespace {

template <int Count>
struct Chain {
  float* left[Count];
};

// One pass over a chain of `Count` lefts; the value stays in a register.
template <int Count>
void add_short_chain(Context& context, const float* leaf, float* const* lefts, index_t n) {
  Chain<Count> chain;
  for (int c = 0; c < Count; ++c) chain.left[c] = lefts[c];
  context.device.parallel_for(
      "weft/add_chain", n, KOKKOS_LAMBDA(index_t i) {
        float sum = leaf[i];
        for (int c = 0; c < Count; ++c) sum = chain.left[c][i] + sum;
        chain.left[Count - 1][i] = sum;
      });
}

}  // namespace

void add_chain(Context& context, const float* leaf, std::span<float* const> lefts, index_t n) {
  const float* sum = leaf;
  while (!lefts.empty()) {
    const std::size_t count = lefts.size() < 3 ? lefts.size() : 3;
    if (count == 1) add_short_chain<1>(context, sum, lefts.data(), n);
    if (count == 2) add_short_chain<2>(context, sum, lefts.data(), n);
    if (count == 3) add_short_chain<3>(context, sum, lefts.data(), n);
    sum = lefts[count - 1];
    lefts = lefts.subspan(count);
  }
}

void multiply(Context& context, const float* a, const float* b, float* out, index_t n) {
  context.device.parallel_for(
      "weft/multiply", n, KOKKOS_LAMBDA(index_t i) { out[i] = a[i] * b[i]; });
}

void add_bias(Context& context, const float* x, const float* bias, float* y, index_t num_rows,
              index_t n) {
  context.device.parallel_for(
      "weft/add_bias", num_rows, KOKKOS_LAMBDA(index_t row) {
        const float* x_row = x + row * n;
        float* y_row = y + row * n;
        for (index_t j = 0; j < n; ++j) y_row[j] = x_row[j] + bias[j];
      });
}

void add_bias_gelu(Context& context, const float* x, const float* bias, float* y, float* slope,
                   index_t num_rows, index_t n) {
  context.device.parallel_for(
      "weft/add_bias_gelu", num_rows, KOKKOS_LAMBDA(index_t row) {
        const float* x_row = x + row * n;
        float* y_row = y + row * n;
        float* slope_row = slope + row * n;
        for (index_t j = 0; j < n; ++j) {
          const math::ValueAndSlope at = math::gelu(x_row[j] + bias[j]);
          y_row[j] = at.value;
          slope_row[j] = at.slope;
        }
      });
}

void dropout(Context& context, const float* x, float* y, index_t n, float rate,
             const DropoutIndex& index) {
  if (n == 0) return;
  const random::Key key = random::key_of(index.seed, Stream::dropout);
  const auto step = static_cast<std::uint32_t>(index.step);
  const auto layer = static_cast<std::uint32_t>(index.layer);
  const float scale = 1.0f / (1.0f - rate);
  const index_t first = index.first_element;
  // Four neighbouring global indices share one Philox block; the range may begin or end inside one.
  const index_t first_block = first / 4;
  const index_t num_blocks = (first + n + 3) / 4 - first_block;
  context.device.parallel_for(
      "weft/dropout", num_blocks, KOKKOS_LAMBDA(index_t b) {
        const index_t block = first_block + b;
        const random::Words words =
            random::words_at(key, layer, step, static_cast<std::uint64_t>(block));
        for (index_t lane = 0; lane < 4; ++lane) {
          const index_t i = block * 4 + lane - first;
          if (i < 0 || i >= n) continue;
          y[i] = random::uniform(words.word[lane]) < rate ? 0.0f : x[i] * scale;
        }
      });
}

void take_columns(Context& context, const float* in, index_t row_length, index_t first_col,
                  float* out, index_t num_rows, index_t num_cols) {
  context.device.parallel_for(
      "weft/take_columns", num_rows, KOKKOS_LAMBDA(index_t row) {
        for (index_t j = 0; j < num_cols; ++j)
          out[row * num_cols + j] = in[row * row_length + first_col + j];
      });
}

}  // namespace weft::kernels
