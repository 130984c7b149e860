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

// What all steps need to find their operands.
struct Layout {
  index_t n;         // tokens
  index_t d;         // head_dim
  index_t heads;     // of the piece
  index_t qkv_row;   // 3 width
  index_t out_row;   // width
  float scale;       // 1 / sqrt(d)
  index_t unit_end;  // scores of one unit, rounded up: the next array's place in a workspace
  index_t turn_end;  // a [d, n] array, likewise

  explicit Layout(const AttentionShape& shape)
      : n(shape.tokens),
        d(shape.head_dim),
        heads(shape.heads),
        qkv_row(3 * shape.width()),
        out_row(shape.width()),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)))),
        unit_end(round_up(n * n, 64)),
        turn_end(round_up(n * d, 64)) {}

  // Where a unit's q, k (which = 1), v (2) or its output begins.
  KOKKOS_INLINE_FUNCTION index_t in_qkv(index_t unit, index_t which) const {
    return unit / heads * n * qkv_row + (unit % heads * 3 + which) * d;
  }
  KOKKOS_INLINE_FUNCTION index_t in_out(index_t unit) const {
    return unit / heads * n * out_row + unit % heads * d;
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

// s = q k^T
GemmCall scores(const Layout& at, const float* q, const float* k_turned, float* s) {
  return product(at.n, at.n, at.d, q, at.qkv_row, k_turned, at.n, s, at.n);
}

// o = p v
GemmCall output(const Layout& at, const float* p, const float* v, float* o) {
  return product(at.n, at.d, at.n, p, at.n, v, at.qkv_row, o, at.out_row);
}

// dp = do v^T
GemmCall dprobabilities(const Layout& at, const float* dout, const float* v_turned, float* dp) {
  return product(at.n, at.n, at.d, dout, at.out_row, v_turned, at.n, dp, at.n);
}

// dq = ds k
GemmCall dquery(const Layout& at, const float* ds, const float* k, float* dq) {
  return product(at.n, at.d, at.n, ds, at.n, k, at.qkv_row, dq, at.qkv_row);
}

// dk = ds^T q, or dv = p^T do, whose right side's rows are `row` apart
GemmCall turned_product(const Layout& at, const float* p, const float* right, index_t row,
                        float* out) {
  GemmCall call = product(at.n, at.d, at.n, p, at.n, right, row, out, at.qkv_row);
  call.transpose_a = true;
  return call;
}

// --- Steps of a wave. Of each unit the workspace holds the scores or probabilities, then, for the
// backward pass, their gradients, then k (and v) turned.

// Turns q (which = 0), k or v of each unit, [n, d], to [d, n] in the workspace at `to`: a product
// with b transposed is half as fast as one without, since the small path of BLIS does not take it.
void turn_units(Context& context, const Layout& at, const Wave& wave, const float* qkv,
                index_t which, index_t per_unit, index_t to) {
  each(
      context, "weft/attention.turn", wave.units.size(), KOKKOS_LAMBDA(index_t i) {
        transpose_on_one_thread(qkv + at.in_qkv(wave.units.begin + i, which), at.qkv_row, at.n,
                                at.d, wave.workspace + i * per_unit + to);
      });
}

// s becomes exp((s - max) / sqrt(d)), row by row.
void exponentiate(Context& context, const Layout& at, const Wave& wave, index_t per_unit,
                  float* row_softmax) {
  each(
      context, "weft/attention.exp", wave.units.size() * at.n, KOKKOS_LAMBDA(index_t i) {
        float* row = wave.workspace + i / at.n * per_unit + i % at.n * at.n;
        const float largest = max_of(at.n, row);
        for (index_t j = 0; j < at.n; ++j) row[j] = math::exp((row[j] - largest) * at.scale);
        float* kept = row_softmax + (wave.units.begin * at.n + i) * 2;
        kept[0] = largest;
        kept[1] = 1.0f / sum_of<float>(at.n, [=](index_t j) { return row[j]; });
      });
}

void divide_by_sums(Context& context, const Layout& at, const Wave& wave, const float* row_softmax,
                    float* out) {
  each(
      context, "weft/attention.divide", wave.units.size() * at.n, KOKKOS_LAMBDA(index_t i) {
        float* row = out + at.in_out(wave.units.begin + i / at.n) + i % at.n * at.out_row;
        const float inverse_sum = row_softmax[(wave.units.begin * at.n + i) * 2 + 1];
        for (index_t j = 0; j < at.d; ++j) row[j] *= inverse_sum;
      });
}

// s becomes p, dp becomes ds, row by row; `dp_at`: where dp lies in a unit's workspace.
void differentiate(Context& context, const Layout& at, const Wave& wave, index_t per_unit,
                   index_t dp_at, const float* row_softmax, const float* out, const float* dout) {
  each(
      context, "weft/attention_backward.softmax", wave.units.size() * at.n,
      KOKKOS_LAMBDA(index_t i) {
        const index_t in_rows = at.in_out(wave.units.begin + i / at.n) + i % at.n * at.out_row;
        const float* o_row = out + in_rows;
        const float* do_row = dout + in_rows;
        const float delta = sum_of<float>(at.d, [=](index_t j) { return do_row[j] * o_row[j]; });
        const float* kept = row_softmax + (wave.units.begin * at.n + i) * 2;
        const float largest = kept[0], inverse_sum = kept[1];
        float* p_row = wave.workspace + i / at.n * per_unit + i % at.n * at.n;
        float* ds_row = p_row + dp_at;
        for (index_t j = 0; j < at.n; ++j) {
          const float p = math::exp((p_row[j] - largest) * at.scale) * inverse_sum;
          p_row[j] = p;
          ds_row[j] = p * (ds_row[j] - delta) * at.scale;
        }
      });
}

}  // namespace

// The division by a row's sum comes after the product with v: d numbers a row instead of n.
void attention(Context& context, const AttentionShape& shape, const float* qkv, float* out,
               float* row_softmax) {
  const Layout at(shape);
  const index_t k_at = at.unit_end, per_unit = k_at + at.turn_end;
  for_each_wave(context, shape, per_unit, [&](const Wave& wave) {
    turn_units(context, at, wave, qkv, 1, per_unit, k_at);
    for (index_t i = 0; i < wave.units.size(); ++i) {
      float* s = wave.workspace + i * per_unit;
      gemm(context, scores(at, qkv + at.in_qkv(wave.units.begin + i, 0), s + k_at, s));
    }
    exponentiate(context, at, wave, per_unit, row_softmax);
    for (index_t i = 0; i < wave.units.size(); ++i) {
      const index_t unit = wave.units.begin + i;
      gemm(context, output(at, wave.workspace + i * per_unit, qkv + at.in_qkv(unit, 2),
                           out + at.in_out(unit)));
    }
    divide_by_sums(context, at, wave, row_softmax, out);
  });
}

// With p the probabilities and delta = sum_j p_j dp_j, which is also sum_j do_j o_j
// (FlashAttention, section B.2, equation 4) and shorter that way:
//   dv = p^T do;  dp = do v^T;  ds = p (dp - delta) / sqrt(d);  dq = ds k;  dk = ds^T q
void attention_backward(Context& context, const AttentionShape& shape, const float* qkv,
                        const float* out, const float* row_softmax, const float* dout,
                        float* dqkv) {
  const Layout at(shape);
  const index_t dp_at = at.unit_end, k_at = 2 * at.unit_end, v_at = k_at + at.turn_end;
  const index_t per_unit = v_at + at.turn_end;
  for_each_wave(context, shape, per_unit, [&](const Wave& wave) {
    turn_units(context, at, wave, qkv, 1, per_unit, k_at);
    turn_units(context, at, wave, qkv, 2, per_unit, v_at);
    for (index_t i = 0; i < wave.units.size(); ++i) {
      const index_t unit = wave.units.begin + i;
      float* s = wave.workspace + i * per_unit;
      gemm(context, scores(at, qkv + at.in_qkv(unit, 0), s + k_at, s));
      gemm(context, dprobabilities(at, dout + at.in_out(unit), s + v_at, s + dp_at));
    }
    differentiate(context, at, wave, per_unit, dp_at, row_softmax, out, dout);
    for (index_t i = 0; i < wave.units.size(); ++i) {
      const index_t unit = wave.units.begin + i;
      const float* p = wave.workspace + i * per_unit;
      const float* q = qkv + at.in_qkv(unit, 0);
      float* dq = dqkv + at.in_qkv(unit, 0);
      gemm(context, dquery(at, p + dp_at, q + at.d, dq));
      gemm(context, turned_product(at, p + dp_at, q, at.qkv_row, dq + at.d));
      gemm(context, turned_product(at, p, dout + at.in_out(unit), at.out_row, dq + 2 * at.d));
    }
  });
}

std::vector<GemmCall> attention_products(const AttentionShape& shape) {
  const Layout at(shape);
  return {scores(at, nullptr, nullptr, nullptr),
          output(at, nullptr, nullptr, nullptr),
          dprobabilities(at, nullptr, nullptr, nullptr),
          dquery(at, nullptr, nullptr, nullptr),
          turned_product(at, nullptr, nullptr, at.qkv_row, nullptr),
          turned_product(at, nullptr, nullptr, at.out_row, nullptr)};
}

}  // namespace weft::kernels
