// Scaled dot-product attention of several heads, forward and backward, as loops over samples,
// heads, queries and keys (Vaswani et al., "Attention is all you need", 2017, equation 1).
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

// Where things are. Rows are tokens, sample-major. Columns of q, k, v: head * 3d + which * d + j,
// which: 0 q, 1 k, 2 v; columns of the output: head * d + j. d = width / heads.
struct AttentionLayout {
  std::size_t tokens;
  std::size_t heads;
  std::size_t head_dim;

  std::size_t row(std::size_t sample, std::size_t token) const { return sample * tokens + token; }
  std::size_t in_qkv(std::size_t head, std::size_t which, std::size_t j) const {
    return head * 3 * head_dim + which * head_dim + j;
  }
  std::size_t in_out(std::size_t head, std::size_t j) const { return head * head_dim + j; }
};

inline AttentionLayout attention_layout(const Matrix& qkv, std::size_t tokens, std::size_t heads) {
  expect(tokens > 0 && heads > 0 && qkv.rows % tokens == 0 && qkv.cols % (3 * heads) == 0,
         "attention: whole samples of tokens, and 3 heads d columns");
  return {tokens, heads, qkv.cols / (3 * heads)};
}

// Which keys a query sees, of its own sample.
struct AttentionMask {
  bool causal = false;               // those of its own and of earlier tokens
  std::vector<std::size_t> lengths;  // of each sample: tokens before it, and a query behind it sees
                                     // none; empty: no such limit

  bool sees(std::size_t sample, std::size_t query, std::size_t key) const {
    if (causal && key > query) return false;
    return lengths.empty() || (query < lengths[sample] && key < lengths[sample]);
  }
};

// p[i,j] = softmax over j of sum_c q[i,c] k[j,c] / sqrt(d), of one head of one sample; a score that
// the mask hides is -inf. A query that sees nothing has probabilities of 0.
inline Matrix attention_probabilities(const Matrix& qkv, const AttentionLayout& at,
                                      std::size_t sample, std::size_t head,
                                      const AttentionMask& mask) {
  Matrix scores(at.tokens, at.tokens);
  for (std::size_t i = 0; i < at.tokens; ++i) {
    for (std::size_t j = 0; j < at.tokens; ++j) {
      double sum = 0.0;
      for (std::size_t c = 0; c < at.head_dim; ++c) {
        sum += qkv(at.row(sample, i), at.in_qkv(head, 0, c)) *
               qkv(at.row(sample, j), at.in_qkv(head, 1, c));
      }
      scores(i, j) = mask.sees(sample, i, j) ? sum / std::sqrt(static_cast<double>(at.head_dim))
                                             : -std::numeric_limits<double>::infinity();
    }
  }
  Matrix p = softmax(scores);
  for (std::size_t i = 0; i < at.tokens; ++i) {
    for (std::size_t j = 0; !mask.sees(sample, i, i) && j < at.tokens; ++j) p(i, j) = 0.0;
  }
  return p;
}

// o[i,c] = sum_j p[i,j] v[j,c]; qkv [T, 3 width] -> [T, width].
inline Matrix attention_forward(const Matrix& qkv, std::size_t tokens, std::size_t heads,
                                const AttentionMask& mask = {}) {
  const AttentionLayout at = attention_layout(qkv, tokens, heads);
  Matrix out(qkv.rows, qkv.cols / 3);
  for (std::size_t sample = 0; sample < qkv.rows / tokens; ++sample) {
    for (std::size_t head = 0; head < heads; ++head) {
      const Matrix p = attention_probabilities(qkv, at, sample, head, mask);
      for (std::size_t i = 0; i < tokens; ++i) {
        for (std::size_t c = 0; c < at.head_dim; ++c) {
          for (std::size_t j = 0; j < tokens; ++j) {
            out(at.row(sample, i), at.in_out(head, c)) +=
                p(i, j) * qkv(at.row(sample, j), at.in_qkv(head, 2, c));
          }
        }
      }
    }
  }
  return out;
}

// The chain rule, per head and sample:
//   dv[j,c] = sum_i p[i,j] do[i,c];  dp[i,j] = sum_c do[i,c] v[j,c]
//   ds[i,j] = p[i,j] (dp[i,j] - sum_k p[i,k] dp[i,k]) / sqrt(d)
//   dq[i,c] = sum_j ds[i,j] k[j,c];  dk[j,c] = sum_i ds[i,j] q[i,c]
inline Matrix attention_backward(const Matrix& qkv, const Matrix& dout, std::size_t tokens,
                                 std::size_t heads, const AttentionMask& mask = {}) {
  const AttentionLayout at = attention_layout(qkv, tokens, heads);
  expect(dout.rows == qkv.rows && dout.cols * 3 == qkv.cols, "attention_backward: shapes");
  Matrix dqkv(qkv.rows, qkv.cols);
  for (std::size_t sample = 0; sample < qkv.rows / tokens; ++sample) {
    for (std::size_t head = 0; head < heads; ++head) {
      const Matrix p = attention_probabilities(qkv, at, sample, head, mask);
      for (std::size_t i = 0; i < tokens; ++i) {
        const std::size_t row_i = at.row(sample, i);
        std::vector<double> dp(tokens, 0.0);
        double mean_dp = 0.0;  // under p
        for (std::size_t j = 0; j < tokens; ++j) {
          for (std::size_t c = 0; c < at.head_dim; ++c) {
            dp[j] +=
                dout(row_i, at.in_out(head, c)) * qkv(at.row(sample, j), at.in_qkv(head, 2, c));
          }
          mean_dp += p(i, j) * dp[j];
        }
        for (std::size_t j = 0; j < tokens; ++j) {
          const std::size_t row_j = at.row(sample, j);
          const double ds =
              p(i, j) * (dp[j] - mean_dp) / std::sqrt(static_cast<double>(at.head_dim));
          for (std::size_t c = 0; c < at.head_dim; ++c) {
            const std::size_t q = at.in_qkv(head, 0, c), k = at.in_qkv(head, 1, c);
            dqkv(row_i, q) += ds * qkv(row_j, k);
            dqkv(row_j, k) += ds * qkv(row_i, q);
            dqkv(row_j, at.in_qkv(head, 2, c)) += p(i, j) * dout(row_i, at.in_out(head, c));
          }
        }
      }
    }
  }
  return dqkv;
}

}  // namespace weft::oracle
