// Attention's kernels on given data, forward and backward, and how their outcomes are compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "core/kernels/attention.hpp"
#include "tests/core/float_data.hpp"
#include "tests/oracle/attention.hpp"

namespace weft::testing {

inline std::size_t size_of(index_t n) { return static_cast<std::size_t>(n); }

struct AttentionOutcome {
  Floats out, row_softmax, dqkv;
};

// Forward and backward; what is to be written is NaN before.
inline AttentionOutcome run_attention(Context& context, const kernels::AttentionShape& shape,
                                      const float* qkv, const float* dout) {
  AttentionOutcome o{Floats(size_of(shape.num_rows() * shape.width()), NAN),
                     Floats(size_of(shape.num_units() * shape.tokens * 2), NAN),
                     Floats(size_of(shape.num_rows() * 3 * shape.width()), NAN)};
  kernels::attention(context, shape, qkv, o.out.data(), o.row_softmax.data());
  kernels::attention_backward(context, shape, qkv, o.out.data(), o.row_softmax.data(), dout,
                              o.dqkv.data());
  return o;
}

inline std::string difference(const AttentionOutcome& got, const AttentionOutcome& expected) {
  return bit_difference(got.out, expected.out) +
         bit_difference(got.row_softmax, expected.row_softmax) +
         bit_difference(got.dqkv, expected.dqkv);
}

struct AttentionData {
  Floats qkv, dout;
  AttentionData(const kernels::AttentionShape& shape, std::uint64_t seed, bool hostile = false)
      : qkv(make(shape.num_rows() * 3 * shape.width(), seed, hostile)),
        dout(make(shape.num_rows() * shape.width(), seed + 1, hostile)) {}

 private:
  static Floats make(index_t n, std::uint64_t seed, bool hostile) {
    return hostile ? hostile_floats(size_of(n), seed) : random_floats(size_of(n), seed, -2, 2);
  }
};

inline oracle::Matrix matrix_of(const Floats& values, index_t rows) {
  return {size_of(rows), values.size() / size_of(rows), {values.begin(), values.end()}};
}

// The largest deviation relative to the largest element.
inline double deviation(const Floats& got, const oracle::Matrix& expected) {
  double largest = 0.0, worst = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    worst = std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]));
    if (!std::isfinite(got[i])) return INFINITY;
  }
  return largest == 0.0 ? worst : worst / largest;
}

// Columns [first, first + width) of rows of `row_length`.
inline Floats columns_of(const Floats& x, index_t row_length, index_t first, index_t width) {
  Floats out;
  for (index_t i = 0; i < static_cast<index_t>(x.size()); ++i) {
    const index_t column = i % row_length - first;
    if (column >= 0 && column < width) out.push_back(x[size_of(i)]);
  }
  return out;
}

// A head's q for each token, its k and its v, as one block: one sample of one head, d = 1.
inline Floats one_head(const Floats& q, const Floats& k, const Floats& v) {
  Floats qkv;
  for (std::size_t t = 0; t < q.size(); ++t) qkv.insert(qkv.end(), {q[t], k[t], v[t]});
  return qkv;
}

}  // namespace weft::testing
