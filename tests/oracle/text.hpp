// The whole models of text with their optimizer, on one process, in double: an encoder with a class
// for each text (Devlin et al., "BERT", 2019, section 3, with pre-norm blocks and mean pooling),
// and a generative transformer with a loss for each token (Radford et al., 2019, section 2.3). The
// judges of a training run on any layout; they know no shards, lanes, stages or microbatches.
//
//   h = dropout(embedding[token] + position)                      [T, hidden], T = texts x tokens
//   h = blocks(h)                                                 (transformer_block.hpp)
//   classifier:  logits = head(mean over real tokens of final_norm(h))       [texts, classes]
//   generator:   logits = final_norm(h) head.weight^T                         [T, vocabulary]
#pragma once

#include <cstdint>
#include <vector>

#include "tests/oracle/matrix.hpp"
#include "tests/oracle/training.hpp"
#include "tests/oracle/transformer_block.hpp"

namespace weft::oracle {

// y[t] = table[ids[t]]; and the table's gradient, the sum of dy over the rows that took each.
Matrix embed(const std::vector<int>& ids, const Matrix& table);
Matrix embedding_gradient(const std::vector<int>& ids, const Matrix& dy, std::size_t vocabulary);

// y[text] = mean over its first `length` tokens, 0 where there are none; and its gradient, dy /
// length for each of them and 0 for the others.
Matrix masked_mean_pool(const Matrix& x, std::size_t tokens,
                        const std::vector<std::size_t>& lengths);
Matrix masked_mean_pool_backward(const Matrix& dy, std::size_t tokens,
                                 const std::vector<std::size_t>& lengths);

struct TextShape {
  std::size_t vocabulary = 0;
  std::size_t tokens = 0;   // of a text, padding included
  std::size_t classes = 0;  // 0: the generator
  bool tied = false;        // the generator's head.weight is embedding.weight
  std::size_t hidden = 0;
  std::size_t layers = 0;
  std::size_t heads = 0;
  std::size_t mlp_ratio = 4;
  double dropout = 0.0;
  double norm_eps = 1e-5;

  bool is_generator() const { return classes == 0; }
  BlocksShape blocks() const {
    return {layers, tokens, hidden, heads, mlp_ratio, dropout, norm_eps};
  }
};

// The global batch in global order, padding included.
struct TextBatch {
  std::vector<int> ids;              // [texts x tokens]
  std::vector<std::size_t> lengths;  // [texts]; the classifier's
  std::vector<int> labels;           // [texts], or the generator's [texts x tokens]
  std::vector<double> weights;       // one a label
};

// Every parameter by name, all zero, with its shape: embedding.weight, position, the blocks',
// final_norm.{gain,bias}, head.weight unless it is tied, and the classifier's head.bias.
NamedMatrices zero_parameters(const TextShape& shape);

class OracleText {
 public:
  // `parameters` must have the names and shapes of zero_parameters(shape); throws
  // std::invalid_argument. `position` does not decay.
  OracleText(const TextShape& shape, const OptimizerSettings& optimizer, NamedMatrices parameters);

  // masks: num_dropouts() of [T, hidden], or none at all for no dropout.
  BatchGradients loss_and_gradients(const TextBatch& batch, const std::vector<Matrix>& masks) const;

  // The same, then one update of all parameters.
  TrainStep train_step(const TextBatch& batch, const std::vector<Matrix>& masks);

  const NamedMatrices& parameters() const { return training_.parameters(); }

 private:
  TextShape shape_;
  Training training_;
};

}  // namespace weft::oracle
