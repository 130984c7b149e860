#include "core/kernels/attention.hpp"

#include <algorithm>
#include <cmath>

#include "core/kernels/math.hpp"
#include "core/kernels/reduce.hpp"
#include "core/kernels/transpose.hpp"
#include "core/tensor.hpp"

namespace weft::kernels {

namespace {

// Units whose scores are in memory at once on a GPU. On a host it is one for each thread.
constexpr index_t device_wave = 256;

// Rows of queries of one product where attention is causal: what they do not see is left out but
// for a triangle in the last square. Of 16, 32 and 64 the best at 256 tokens: 0.7 of the time of
// attention to all of them.
constexpr index_t causal_rows = 64;

// A matrix of each unit: `tokens` rows of head_dim, `row` apart, in a larger one.
template <class T>
struct UnitMatrix {
  T* data;            // of unit 0
  index_t row;        // from token to token
  index_t head;       // from head to head
  index_t num_heads;  // of a sample
  index_t tokens;

  KOKKOS_INLINE_FUNCTION T* of(index_t unit) const {
    return data + unit / num_heads * tokens * row + unit % num_heads * head;
  }
};

// What one product takes: some queries and the keys that the last of them sees, [0, num_keys).
struct QueryBlock {
  Range queries;
  index_t num_keys;
};

// What all steps need to find their operands.
struct Layout {
  index_t n;      // tokens
  index_t d;      // head_dim
  index_t heads;  // of the piece
  float scale;    // 1 / sqrt(d)
  AttentionMask mask;
  index_t unit_end;  // scores of one unit, rounded up: the next array's place in a workspace
  index_t turn_end;  // a [d, n] or [n, d] array, likewise

  explicit Layout(const AttentionShape& shape)
      : n(shape.tokens),
        d(shape.head_dim),
        heads(shape.heads),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)))),
        mask(shape.mask),
        unit_end(round_up(n * n, 64)),
        turn_end(round_up(n * d, 64)) {}

  // q (which = 0), k (1) or v (2) of the units of a piece.
  template <class T>
  UnitMatrix<T> in_qkv(T* qkv, index_t which) const {
    return {qkv + which * d, 3 * heads * d, 3 * d, heads, n};
  }
  template <class T>
  UnitMatrix<T> in_out(T* out) const {
    return {out, heads * d, d, heads, n};
  }

  index_t num_blocks() const { return mask.causal ? (n + causal_rows - 1) / causal_rows : 1; }
  QueryBlock block(index_t i) const {
    if (!mask.causal) return {{0, n}, n};
    const index_t end = std::min((i + 1) * causal_rows, n);
    return {{i * causal_rows, end}, end};
  }
  // num_keys of the block that `query` is in: so many columns of its scores are in use.
  KOKKOS_INLINE_FUNCTION index_t columns_of(index_t query) const {
    const index_t end = (query / causal_rows + 1) * causal_rows;
    return mask.causal && end < n ? end : n;
  }

  // Tokens of a unit's sample that are not padding.
  KOKKOS_INLINE_FUNCTION index_t length_of(index_t unit) const {
    return mask.lengths ? mask.lengths[unit / heads] : n;
  }
  // Keys that a query sees: the first ones.
  KOKKOS_INLINE_FUNCTION index_t keys_of(index_t unit, index_t query) const {
    const index_t length = length_of(unit);
    if (query >= length) return 0;
    return mask.causal && query + 1 < length ? query + 1 : length;
  }
};

// Units under way and the floats they work in.
struct Wave {
  Range units;
  float* workspace;
};

// body(wave) for all units in waves. On a host, threads take consecutive units and go through them
// one by one, each with a workspace of its own; on a GPU a wave is many units.
template <class Body>
void for_each_wave(Context& context, const AttentionShape& shape, index_t floats_per_unit,
                   const Body& body) {
  const index_t num_units = shape.num_units();
  const index_t tasks =
      device_memory_is_host ? std::min<index_t>(context.device.num_threads(), num_units) : 1;
  const index_t wave = device_memory_is_host ? 1 : std::min(num_units, device_wave);
  const Tensor workspace(context.arena, MemoryKind::workspace, {tasks * wave * floats_per_unit});
  float* const floats = workspace.data();
  context.device.host_tasks("weft/attention", tasks, [&](index_t task) {
    const Range mine = part_of(task, tasks, num_units);
    for (index_t first = mine.begin; first < mine.end; first += wave) {
      body(Wave{{first, std::min(first + wave, mine.end)}, floats + task * wave * floats_per_unit});
    }
  });
}

// f(place in the wave, unit, block) for each block of each unit: where products are called.
template <class F>
void for_each_block(const Layout& at, const Wave& wave, const F& f) {
  for (index_t i = 0; i < wave.units.size(); ++i) {
    for (index_t b = 0; b < at.num_blocks(); ++b) f(i, wave.units.begin + i, at.block(b));
  }
}

// f(i) for i in [0, n): a step of a wave. On a host the thread that has the wave does it alone; a
// parallel loop inside a task would be one too many.
template <class F>
void each(Context& context, const char* label, index_t n, const F& f) {
  if constexpr (device_memory_is_host) {
    for (index_t i = 0; i < n; ++i) f(i);
  } else {
    context.device.parallel_for(label, n, f);
  }
}

// The largest of a row, in 16 running maxima as sum_of has 16 sums.
KOKKOS_INLINE_FUNCTION float max_of(index_t n, const float* row) {
  float largest[16];
  for (index_t k = 0; k < 16; ++k) largest[k] = row[k < n ? k : 0];
  index_t i = 16;
  for (; i + 16 <= n; i += 16) {
    for (index_t k = 0; k < 16; ++k) {
      largest[k] = row[i + k] > largest[k] ? row[i + k] : largest[k];
    }
  }
  for (index_t k = 0; i + k < n; ++k)
    largest[k] = row[i + k] > largest[k] ? row[i + k] : largest[k];
  for (index_t half = 8; half >= 1; half /= 2) {
    for (index_t k = 0; k < half; ++k) {
      largest[k] = largest[k + half] > largest[k] ? largest[k + half] : largest[k];
    }
  }
  return largest[0];
}

// c[m, n] = a[m, k] b[k, n]
GemmCall product(index_t m, index_t n, index_t k, const float* a, index_t lda, const float* b,
                 index_t ldb, float* c, index_t ldc) {
  return {.m = m, .n = n, .k = k, .a = a, .lda = lda, .b = b, .ldb = ldb, .c = c, .ldc = ldc};
}

// --- The products of a unit. An operand is a whole matrix, `row` from token to token; a [d, n] one
// is dense, and so are the scores. Without data it is about shapes.

template <class T>
struct Operand {
  T* data = nullptr;
  index_t row = 0;

  T* at(index_t token, index_t column = 0) const {
    return data ? data + token * row + column : nullptr;
  }
};
using Input = Operand<const float>;
using Output = Operand<float>;

// s = q k^T, or dp = do v^T
GemmCall scores(const Layout& at, const QueryBlock& block, const Input& q, const float* k_turned,
                float* s) {
  const Output rows{s, at.n};
  return product(block.queries.size(), block.num_keys, at.d, q.at(block.queries.begin), q.row,
                 k_turned, at.n, rows.at(block.queries.begin), at.n);
}

// o = p v, or dq = ds k
GemmCall output(const Layout& at, const QueryBlock& block, const float* p, const Input& v,
                const Output& o) {
  const Input rows{p, at.n};
  return product(block.queries.size(), at.d, block.num_keys, rows.at(block.queries.begin), at.n,
                 v.data, v.row, o.at(block.queries.begin), o.row);
}

// dk = ds^T q, or dv = p^T do, of the keys that have the numbers of the block's queries: the
// queries from there on see them.
GemmCall turned_product(const Layout& at, const QueryBlock& block, const float* p,
                        const Input& right, const Output& out) {
  const index_t first = block.queries.begin;
  const Input rows{p, at.n};
  GemmCall call = product(block.queries.size(), at.d, at.n - first, rows.at(first, first), at.n,
                          right.at(first), right.row, out.at(first), out.row);
  call.transpose_a = true;
  return call;
}

// --- Steps of a wave. A unit's workspace holds the scores or probabilities, then, for the backward
// pass, their gradients, then operands turned or copied.

// Turns a matrix of each unit, [n, d], to [d, n] in the workspace at `to`, with 0 behind the
// sample's length: a product with b transposed is half as fast as one without, since the small path
// of BLIS does not take it.
void turn_units(Context& context, const Layout& at, const Wave& wave,
                const UnitMatrix<const float>& from, index_t per_unit, index_t to) {
  each(
      context, "weft/attention.turn", wave.units.size(), KOKKOS_LAMBDA(index_t i) {
        const index_t unit = wave.units.begin + i;
        float* turned = wave.workspace + i * per_unit + to;
        transpose_on_one_thread(from.of(unit), from.row, at.n, at.d, turned);
        for (index_t j = 0; j < at.d; ++j) {
          for (index_t t = at.length_of(unit); t < at.n; ++t) turned[j * at.n + t] = 0.0f;
        }
      });
}

// Where samples have lengths: a matrix of each unit to the workspace at `to`, dense, rows behind
// the sample's length as 0. Those rows meet probabilities of 0 in a product, and 0 x NaN were NaN.
void copy_units(Context& context, const Layout& at, const Wave& wave,
                const UnitMatrix<const float>& from, index_t per_unit, index_t to) {
  if (!at.mask.lengths) return;
  each(
      context, "weft/attention.copy", wave.units.size() * at.n, KOKKOS_LAMBDA(index_t i) {
        const index_t unit = wave.units.begin + i / at.n, token = i % at.n;
        const float* row = from.of(unit) + token * from.row;
        float* copied = wave.workspace + i / at.n * per_unit + to + token * at.d;
        const bool is_real = token < at.length_of(unit);
        for (index_t j = 0; j < at.d; ++j) copied[j] = is_real ? row[j] : 0.0f;
      });
}

// What a product takes of one unit: the copy that copy_units made, or the matrix itself.
Input copy_or_matrix(const Layout& at, const UnitMatrix<const float>& from, index_t unit,
                     const float* copy) {
  if (at.mask.lengths) return {copy, at.d};
  return {from.of(unit), from.row};
}

// s becomes exp((s - max) / sqrt(d)), row by row, and 0 where a query does not see the key.
void exponentiate(Context& context, const Layout& at, const Wave& wave, index_t per_unit,
                  float* row_softmax) {
  each(
      context, "weft/attention.exp", wave.units.size() * at.n, KOKKOS_LAMBDA(index_t i) {
        const index_t query = i % at.n;
        const index_t keys = at.keys_of(wave.units.begin + i / at.n, query);
        float* row = wave.workspace + i / at.n * per_unit + query * at.n;
        float* kept = row_softmax + (wave.units.begin * at.n + i) * 2;
        kept[0] = kept[1] = 0.0f;
        if (keys > 0) {
          const float largest = max_of(keys, row);
          for (index_t j = 0; j < keys; ++j) row[j] = math::exp((row[j] - largest) * at.scale);
          kept[0] = largest;
          kept[1] = 1.0f / sum_of<float>(keys, [=](index_t j) { return row[j]; });
        }
        for (index_t j = keys; j < at.columns_of(query); ++j) row[j] = 0.0f;
      });
}

void divide_by_sums(Context& context, const Layout& at, const Wave& wave, const float* row_softmax,
                    const UnitMatrix<float>& out) {
  each(
      context, "weft/attention.divide", wave.units.size() * at.n, KOKKOS_LAMBDA(index_t i) {
        float* row = out.of(wave.units.begin + i / at.n) + i % at.n * out.row;
        const float inverse_sum = row_softmax[(wave.units.begin * at.n + i) * 2 + 1];
        for (index_t j = 0; j < at.d; ++j) row[j] *= inverse_sum;
      });
}

// s becomes p, dp becomes ds, row by row; `dp_at`: where dp lies in a unit's workspace.
void differentiate(Context& context, const Layout& at, const Wave& wave, index_t per_unit,
                   index_t dp_at, const float* row_softmax, const UnitMatrix<const float>& out,
                   const UnitMatrix<const float>& dout) {
  each(
      context, "weft/attention_backward.softmax", wave.units.size() * at.n,
      KOKKOS_LAMBDA(index_t i) {
        const index_t unit = wave.units.begin + i / at.n, query = i % at.n;
        const index_t keys = at.keys_of(unit, query);
        const float* o_row = out.of(unit) + query * out.row;
        const float* do_row = dout.of(unit) + query * dout.row;
        const float delta = sum_of<float>(at.d, [=](index_t j) { return do_row[j] * o_row[j]; });
        const float* kept = row_softmax + (wave.units.begin * at.n + i) * 2;
        const float largest = kept[0], inverse_sum = kept[1];
        float* p_row = wave.workspace + i / at.n * per_unit + query * at.n;
        float* ds_row = p_row + dp_at;
        for (index_t j = 0; j < keys; ++j) {
          const float p = math::exp((p_row[j] - largest) * at.scale) * inverse_sum;
          p_row[j] = p;
          ds_row[j] = p * (ds_row[j] - delta) * at.scale;
        }
        for (index_t j = keys; j < at.columns_of(query); ++j) p_row[j] = ds_row[j] = 0.0f;
      });
}

}  // namespace

// The division by a row's sum comes after the product with v: d numbers a row instead of n.
void attention(Context& context, const AttentionShape& shape, const float* qkv, float* out,
               float* row_softmax) {
  const Layout at(shape);
  const auto q = at.in_qkv(qkv, 0), k = at.in_qkv(qkv, 1), v = at.in_qkv(qkv, 2);
  const auto o = at.in_out(out);
  const index_t k_at = at.unit_end, v_at = k_at + at.turn_end;
  const index_t per_unit = at.mask.lengths ? v_at + at.turn_end : v_at;
  for_each_wave(context, shape, per_unit, [&](const Wave& wave) {
    turn_units(context, at, wave, k, per_unit, k_at);
    copy_units(context, at, wave, v, per_unit, v_at);
    for_each_block(at, wave, [&](index_t i, index_t unit, const QueryBlock& block) {
      float* s = wave.workspace + i * per_unit;
      gemm(context, scores(at, block, {q.of(unit), q.row}, s + k_at, s));
    });
    exponentiate(context, at, wave, per_unit, row_softmax);
    for_each_block(at, wave, [&](index_t i, index_t unit, const QueryBlock& block) {
      const float* p = wave.workspace + i * per_unit;
      gemm(context,
           output(at, block, p, copy_or_matrix(at, v, unit, p + v_at), {o.of(unit), o.row}));
    });
    divide_by_sums(context, at, wave, row_softmax, o);
  });
}

// With p the probabilities and delta = sum_j p_j dp_j, which is also sum_j do_j o_j
// (FlashAttention, section B.2, equation 4) and shorter that way:
//   dv = p^T do;  dp = do v^T;  ds = p (dp - delta) / sqrt(d);  dq = ds k;  dk = ds^T q
void attention_backward(Context& context, const AttentionShape& shape, const float* qkv,
                        const float* out, const float* row_softmax, const float* dout,
                        float* dqkv) {
  const Layout at(shape);
  const auto q = at.in_qkv(qkv, 0), k = at.in_qkv(qkv, 1), v = at.in_qkv(qkv, 2);
  const auto o = at.in_out(out), d_o = at.in_out(dout);
  const auto dq = at.in_qkv(dqkv, 0), dk = at.in_qkv(dqkv, 1), dv = at.in_qkv(dqkv, 2);
  const index_t dp_at = at.unit_end, k_at = 2 * at.unit_end, v_at = k_at + at.turn_end;
  const index_t q_copy_at = v_at + at.turn_end, k_copy_at = q_copy_at + at.turn_end;
  const index_t do_copy_at = k_copy_at + at.turn_end;
  const index_t per_unit = at.mask.lengths ? do_copy_at + at.turn_end : q_copy_at;
  for_each_wave(context, shape, per_unit, [&](const Wave& wave) {
    turn_units(context, at, wave, k, per_unit, k_at);
    turn_units(context, at, wave, v, per_unit, v_at);
    copy_units(context, at, wave, q, per_unit, q_copy_at);
    copy_units(context, at, wave, k, per_unit, k_copy_at);
    copy_units(context, at, wave, d_o, per_unit, do_copy_at);
    for_each_block(at, wave, [&](index_t i, index_t unit, const QueryBlock& block) {
      float* s = wave.workspace + i * per_unit;
      gemm(context, scores(at, block, {q.of(unit), q.row}, s + k_at, s));
      gemm(context, scores(at, block, {d_o.of(unit), d_o.row}, s + v_at, s + dp_at));
    });
    differentiate(context, at, wave, per_unit, dp_at, row_softmax, o, d_o);
    for_each_block(at, wave, [&](index_t i, index_t unit, const QueryBlock& block) {
      const float* p = wave.workspace + i * per_unit;
      const float* ds = p + dp_at;
      gemm(context, output(at, block, ds, copy_or_matrix(at, k, unit, p + k_copy_at),
                           {dq.of(unit), dq.row}));
      gemm(context, turned_product(at, block, ds, copy_or_matrix(at, q, unit, p + q_copy_at),
                                   {dk.of(unit), dk.row}));
      gemm(context, turned_product(at, block, p, copy_or_matrix(at, d_o, unit, p + do_copy_at),
                                   {dv.of(unit), dv.row}));
    });
  });
}

std::vector<GemmCall> attention_products(const AttentionShape& shape) {
  const Layout at(shape);
  const Input in_qkv{nullptr, 3 * shape.width()}, in_out{nullptr, shape.width()};
  const Input from_qkv{nullptr, shape.mask.lengths ? shape.head_dim : in_qkv.row};
  const Input from_out{nullptr, shape.mask.lengths ? shape.head_dim : in_out.row};
  const Output to_qkv{nullptr, in_qkv.row}, to_out{nullptr, in_out.row};
  std::vector<GemmCall> all;
  for (index_t i = 0; i < at.num_blocks(); ++i) {
    const QueryBlock block = at.block(i);
    const GemmCall of_block[] = {scores(at, block, in_qkv, nullptr, nullptr),
                                 output(at, block, nullptr, from_qkv, to_out),
                                 scores(at, block, in_out, nullptr, nullptr),
                                 output(at, block, nullptr, from_qkv, to_qkv),
                                 turned_product(at, block, nullptr, from_qkv, to_qkv),
                                 turned_product(at, block, nullptr, from_out, to_qkv)};
    all.insert(all.end(), std::begin(of_block), std::end(of_block));
  }
  return all;
}

}  // namespace weft::kernels
