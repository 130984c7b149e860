// The models of text.hpp, composed of the single functions beside it.
#include "tests/oracle/text.hpp"

#include <utility>

#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/named_layers.hpp"
#include "tests/oracle/vit.hpp"

namespace weft::oracle {

Matrix embed(const std::vector<int>& ids, const Matrix& table) {
  Matrix y(ids.size(), table.cols);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    expect(ids[t] >= 0 && static_cast<std::size_t>(ids[t]) < table.rows, "embed: id out of range");
    for (std::size_t k = 0; k < table.cols; ++k)
      y(t, k) = table(static_cast<std::size_t>(ids[t]), k);
  }
  return y;
}

Matrix embedding_gradient(const std::vector<int>& ids, const Matrix& dy, std::size_t vocabulary) {
  expect(dy.rows == ids.size(), "embedding_gradient: one row an id");
  Matrix gradient(vocabulary, dy.cols);
  for (std::size_t t = 0; t < ids.size(); ++t) {
    for (std::size_t k = 0; k < dy.cols; ++k)
      gradient(static_cast<std::size_t>(ids[t]), k) += dy(t, k);
  }
  return gradient;
}

Matrix masked_mean_pool(const Matrix& x, std::size_t tokens,
                        const std::vector<std::size_t>& lengths) {
  expect(x.rows == tokens * lengths.size(), "masked_mean_pool: one length a text");
  Matrix y(lengths.size(), x.cols);
  for (std::size_t text = 0; text < lengths.size(); ++text) {
    expect(lengths[text] <= tokens, "masked_mean_pool: a text longer than its tokens");
    for (std::size_t token = 0; token < lengths[text]; ++token) {
      for (std::size_t k = 0; k < x.cols; ++k) {
        y(text, k) += x(text * tokens + token, k) / static_cast<double>(lengths[text]);
      }
    }
  }
  return y;
}

Matrix masked_mean_pool_backward(const Matrix& dy, std::size_t tokens,
                                 const std::vector<std::size_t>& lengths) {
  expect(dy.rows == lengths.size(), "masked_mean_pool_backward: one length a text");
  Matrix dx(dy.rows * tokens, dy.cols);
  for (std::size_t text = 0; text < dy.rows; ++text) {
    for (std::size_t token = 0; token < lengths[text]; ++token) {
      for (std::size_t k = 0; k < dy.cols; ++k) {
        dx(text * tokens + token, k) = dy(text, k) / static_cast<double>(lengths[text]);
      }
    }
  }
  return dx;
}

NamedMatrices zero_parameters(const TextShape& shape) {
  NamedMatrices result;
  result["embedding.weight"] = Matrix(shape.vocabulary, shape.hidden);
  result["position"] = Matrix(shape.tokens, shape.hidden);
  add_blocks(result, shape.blocks());
  add_norm(result, "final_norm", shape.hidden);
  if (shape.is_generator()) {
    if (shape.tied) return result;
    result["head.weight"] = Matrix(shape.vocabulary, shape.hidden);
  } else {
    add_linear(result, "head", shape.classes, shape.hidden);
  }
  return result;
}

OracleText::OracleText(const TextShape& shape, const OptimizerSettings& optimizer,
                       NamedMatrices parameters)
    : shape_(shape),
      training_("OracleText", optimizer, std::move(parameters), zero_parameters(shape),
                {"position"}) {}

BatchGradients OracleText::loss_and_gradients(const TextBatch& batch,
                                              const std::vector<Matrix>& masks) const {
  const BlocksShape shape = shape_.blocks();
  expect(masks.empty() || masks.size() == shape.num_dropouts(),
         "OracleText: one mask after the position and two a block, or none");
  const NamedMatrices& p = parameters();
  const bool generates = shape_.is_generator();

  // Forward.
  const Matrix embedded =
      numbered_dropout(add_position(embed(batch.ids, p.at("embedding.weight")), p.at("position")),
                       masks, 0, shape.dropout);
  Blocks blocks(shape, generates ? AttentionMask{true, {}} : AttentionMask{false, batch.lengths});
  const Matrix h = blocks.forward(p, embedded, masks);
  const Matrix normalized = named_norm(p, "final_norm", h, shape.norm_eps);
  const Matrix in_head =
      generates ? normalized : masked_mean_pool(normalized, shape.tokens, batch.lengths);
  const bool is_tied = generates && shape_.tied;
  const Matrix& weight = p.at(is_tied ? "embedding.weight" : "head.weight");
  const Matrix bias = generates ? zero_vector(shape_.vocabulary) : p.at("head.bias");
  const CrossEntropy entropy =
      softmax_cross_entropy(linear_forward(in_head, weight, bias), batch.labels, batch.weights);

  // Backward.
  BatchGradients result{entropy.loss, entropy.row_losses, {}};
  NamedMatrices& gradients = result.gradients;
  LinearGradients of_head = linear_backward(in_head, weight, entropy.dlogits);
  if (!is_tied) gradients["head.weight"] = of_head.dw;
  if (!generates) gradients["head.bias"] = std::move(of_head.db);
  const Matrix dnormalized =
      generates ? of_head.dx : masked_mean_pool_backward(of_head.dx, shape.tokens, batch.lengths);
  Matrix dh = named_norm_backward(p, "final_norm", h, dnormalized, shape.norm_eps, gradients);
  dh = numbered_dropout(blocks.backward(p, dh, gradients), masks, 0, shape.dropout);
  gradients["position"] = position_gradient(dh, shape.tokens);
  Matrix& of_table = gradients["embedding.weight"];
  of_table = embedding_gradient(batch.ids, dh, shape_.vocabulary);
  for (std::size_t i = 0; is_tied && i < of_table.size(); ++i)
    of_table.values[i] += of_head.dw.values[i];
  return result;
}

TrainStep OracleText::train_step(const TextBatch& batch, const std::vector<Matrix>& masks) {
  return training_.update(loss_and_gradients(batch, masks));
}

}  // namespace weft::oracle
