// Scaled dot-product attention (Vaswani et al., "Attention is all you need", 2017, equation 1) of
// some heads of some samples. A unit is one head of one sample: its products are library calls of
// its own with the same arguments on every layout (EXACT 3.7). The [tokens, tokens] scores of a
// unit live in a workspace that stays in cache; what forward leaves for backward is two numbers a
// row (Dao et al., "FlashAttention", 2022, section 3.1, without its tiles: a unit fits whole).
#pragma once

#include <cstdint>
#include <vector>

#include "core/context.hpp"
#include "core/kernels/gemm.hpp"

namespace weft::kernels {

// Which keys a query sees, all of its own sample. What it does not see has a probability of exactly
// 0 (EXACT 4.2).
struct AttentionMask {
  bool causal = false;  // only those of its own token and of earlier ones
  // [num_samples] in device memory: only those of the sample's first `length` tokens; null: no such
  // limit. A query behind them sees nothing: its output is +0, as are the gradients of its q, k and
  // v. What stands in such a row, of inputs or of gradients, changes no bit anywhere; it may be
  // NaN.
  const std::int32_t* lengths = nullptr;
};

// Rows are tokens, sample-major: t = sample * tokens + token. Columns of q, k, v lie head by head:
// head * 3 head_dim + which * head_dim + j, which: 0 q, 1 k, 2 v; those of the output at
// head * head_dim + j.
struct AttentionShape {
  index_t num_samples = 0;
  index_t tokens = 0;
  index_t heads = 0;
  index_t head_dim = 0;
  AttentionMask mask = {};

  index_t num_units() const { return num_samples * heads; }
  index_t num_rows() const { return num_samples * tokens; }
  index_t width() const { return heads * head_dim; }
};

// out = softmax(q k^T / sqrt(head_dim)) v for each unit. qkv: [num_rows, 3 width]; out: [num_rows,
// width]. row_softmax: [num_units, tokens, 2], of each row of scores its maximum and 1 / the sum of
// exp((score - maximum) / sqrt(head_dim)), over the keys it sees, or 0 and 0; for the backward
// pass.
void attention(Context& context, const AttentionShape& shape, const float* qkv, float* out,
               float* row_softmax);

// dqkv: [num_rows, 3 width] from dout: [num_rows, width]; `out` and `row_softmax` are what forward
// gave. Probabilities are made again from q, k and row_softmax.
void attention_backward(Context& context, const AttentionShape& shape, const float* qkv,
                        const float* out, const float* row_softmax, const float* dout, float* dqkv);

// The distinct products of a unit, shapes only: for the start-up probe.
std::vector<GemmCall> attention_products(const AttentionShape& shape);

}  // namespace weft::kernels
