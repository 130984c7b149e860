// Softmax cross entropy with a weight per row, and its gradient (Bishop, "Pattern recognition and
// machine learning", 2006, equations 4.108 and 4.109). Over whole rows: nothing is sharded here.
#pragma once

#include <algorithm>
#include <cmath>

#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

// p[t,c] = exp(x[t,c]) / sum_j exp(x[t,j]). The row's maximum is subtracted first; that changes
// nothing but overflow.
inline Matrix softmax(const Matrix& logits) {
  Matrix p = logits;
  for (std::size_t t = 0; t < p.rows; ++t) {
    double largest = logits(t, 0);
    for (std::size_t c = 0; c < p.cols; ++c) largest = std::max(largest, logits(t, c));
    double sum = 0.0;
    for (std::size_t c = 0; c < p.cols; ++c) sum += std::exp(logits(t, c) - largest);
    for (std::size_t c = 0; c < p.cols; ++c) p(t, c) = std::exp(logits(t, c) - largest) / sum;
  }
  return p;
}

struct CrossEntropy {
  double loss = 0.0;
  std::vector<double> row_losses;  // -log p of the label, not weighted
  Matrix dlogits;                  // [T, classes], weighted
};

// loss = sum_t w[t] (-log p[t, label[t]]);  dlogits[t,c] = w[t] (p[t,c] - (c == label[t])).
// -log p = log(sum_c exp(x[t,c] - m)) - (x[t, label] - m), m the row's maximum: exact where p is 0.
inline CrossEntropy softmax_cross_entropy(const Matrix& logits, const std::vector<int>& labels,
                                          const std::vector<double>& weights) {
  expect(labels.size() == logits.rows && weights.size() == logits.rows,
         "softmax_cross_entropy: one label and one weight a row");
  CrossEntropy result;
  result.dlogits = softmax(logits);
  for (std::size_t t = 0; t < logits.rows; ++t) {
    const auto label = static_cast<std::size_t>(labels[t]);
    expect(labels[t] >= 0 && label < logits.cols, "softmax_cross_entropy: label out of range");
    double largest = logits(t, 0);
    for (std::size_t c = 0; c < logits.cols; ++c) largest = std::max(largest, logits(t, c));
    double sum = 0.0;
    for (std::size_t c = 0; c < logits.cols; ++c) sum += std::exp(logits(t, c) - largest);
    const double row_loss = std::log(sum) - (logits(t, label) - largest);
    result.row_losses.push_back(row_loss);
    result.loss += weights[t] * row_loss;
    result.dlogits(t, label) -= 1.0;
    for (std::size_t c = 0; c < logits.cols; ++c) result.dlogits(t, c) *= weights[t];
  }
  return result;
}

// Weights that make the loss the mean over the real samples: 1 / number of real rows, 0 for pads.
// `real` has one entry a row of the global batch.
inline std::vector<double> mean_weights(const std::vector<bool>& real) {
  const auto num_real = std::count(real.begin(), real.end(), true);
  expect(num_real > 0, "mean_weights: no real sample");
  std::vector<double> weights(real.size(), 0.0);
  for (std::size_t i = 0; i < real.size(); ++i) {
    if (real[i]) weights[i] = 1.0 / static_cast<double>(num_real);
  }
  return weights;
}

}  // namespace weft::oracle
