// Masks, embeddings and the whole models of text: values by hand, every gradient by central
// differences, and what must not matter (padding, later tokens) or must (order).
#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>

#include "tests/oracle/attention.hpp"
#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/finite_difference.hpp"
#include "tests/oracle/text.hpp"

using namespace weft::oracle;

namespace {

Approx close(double value) { return Approx(value).epsilon(1e-13).margin(1e-14); }

NamedMatrices random_parameters(const TextShape& shape, std::uint64_t seed) {
  NamedMatrices parameters = zero_parameters(shape);
  for (auto& [name, p] : parameters) {
    const bool is_gain = name.ends_with(".gain");
    p.values =
        random_matrix(p.rows, p.cols, seed++, is_gain ? 0.5 : -0.7, is_gain ? 1.5 : 0.7).values;
  }
  return parameters;
}

std::vector<Matrix> random_masks(const TextShape& shape, std::size_t texts, std::uint64_t seed) {
  std::vector<Matrix> masks;
  for (std::size_t i = 0; i < shape.blocks().num_dropouts(); ++i) {
    Matrix mask = random_matrix(texts * shape.tokens, shape.hidden, seed + i, 0.0, 1.0);
    for (double& value : mask.values) value = value >= shape.dropout ? 1.0 : 0.0;
    masks.push_back(mask);
  }
  return masks;
}

// Three texts of five tokens, of which 5, 2 and 3 are real.
const TextShape classifier{.vocabulary = 7,
                           .tokens = 5,
                           .classes = 3,
                           .hidden = 4,
                           .layers = 2,
                           .heads = 2,
                           .mlp_ratio = 2,
                           .dropout = 0.25};
const TextBatch texts{.ids = {1, 2, 3, 4, 5, 6, 1, 0, 0, 0, 3, 3, 2, 0, 0},
                      .lengths = {5, 2, 3},
                      .labels = {0, 1, 2},
                      .weights = {0.5, 0.5, 0.0}};

const TextShape generator{.vocabulary = 6,
                          .tokens = 4,
                          .hidden = 4,
                          .layers = 2,
                          .heads = 2,
                          .mlp_ratio = 2,
                          .dropout = 0.25};
const TextBatch sequences{.ids = {1, 2, 3, 4, 5, 0, 0, 5},
                          .lengths = {},
                          .labels = {2, 3, 4, 5, 0, 0, 5, 1},
                          .weights = {0.2, 0.2, 0.2, 0.2, 0.1, 0.1, 0.0, 0.3}};

// The same, of which the head's weight is the embedding's.
const TextShape tied = [] {
  TextShape shape = generator;
  shape.tied = true;
  return shape;
}();

}  // namespace

TEST_CASE("masked attention is worked out by hand") {
  // One head, d = 1, all queries 1: scores are the keys 0, log 3, log 4; values 4, 8, 12.
  const Matrix qkv(3, 3, {1, 0, 4, 1, std::log(3.0), 8, 1, std::log(4.0), 12});
  const Matrix causal = attention_forward(qkv, 3, 1, {true, {}});
  CHECK(causal[0] == close(4.0));
  CHECK(causal[1] == close(4.0 / 4 + 8.0 * 3 / 4));
  CHECK(causal[2] == close((4.0 + 3 * 8.0 + 4 * 12.0) / 8));
  const Matrix brief = attention_forward(qkv, 3, 1, {false, {2}});
  CHECK(brief[0] == close(7.0));
  CHECK(brief[1] == close(7.0));
  CHECK(brief[2] == 0.0);  // padding sees nothing
  CHECK(attention_forward(qkv, 3, 1, {false, {0}}).values == std::vector<double>(3, 0.0));
  CHECK(attention_forward(qkv, 3, 1, {true, {2}}).values ==
        std::vector<double>{causal[0], causal[1], 0.0});
}

TEST_CASE("masked attention backward agrees with central differences") {
  Matrix qkv = random_matrix(10, 12, 1, -2.0, 2.0);  // two samples of five tokens, two heads of 2
  const Matrix dout = random_matrix(10, 4, 2);
  for (const AttentionMask& mask :
       {AttentionMask{true, {}}, AttentionMask{false, {3, 5}}, AttentionMask{true, {1, 4}}}) {
    const auto f = [&] { return dot(attention_forward(qkv, 5, 2, mask), dout); };
    CHECK(difference_from_gradient(f, qkv, attention_backward(qkv, dout, 5, 2, mask)) == "");
  }
}

TEST_CASE("embeddings and masked means by hand") {
  const Matrix table(3, 2, {1, 2, 3, 4, 5, 6});
  CHECK(embed({2, 0, 2}, table).values == std::vector<double>{5, 6, 1, 2, 5, 6});
  CHECK(embedding_gradient({2, 0, 2}, Matrix(3, 2, {1, 2, 3, 4, 5, 6}), 3).values ==
        std::vector<double>{3, 4, 0, 0, 6, 8});
  CHECK_THROWS_AS(embed({3}, table), std::invalid_argument);
  const Matrix x(6, 1, {1, 2, 3, 4, 5, 6});  // two texts of three tokens
  CHECK(masked_mean_pool(x, 3, {2, 3}).values == std::vector<double>{1.5, 5});
  CHECK(masked_mean_pool(x, 3, {0, 1}).values == std::vector<double>{0, 4});
  CHECK(masked_mean_pool_backward(Matrix(2, 1, {6, 3}), 3, {2, 3}).values ==
        std::vector<double>{3, 3, 0, 1, 1, 1});
}

TEST_CASE("every gradient of the models of text agrees with central differences") {
  for (const auto& [shape, batch] :
       {std::pair{classifier, texts}, {generator, sequences}, {tied, sequences}}) {
    const std::vector<Matrix> masks = random_masks(shape, batch.ids.size() / shape.tokens, 200);
    NamedMatrices parameters = random_parameters(shape, 300);
    const BatchGradients g = OracleText(shape, {}, parameters).loss_and_gradients(batch, masks);
    REQUIRE(g.gradients.size() == parameters.size());
    for (auto& [name, p] : parameters) {
      INFO(name << ", " << shape.classes << " classes");
      const auto f = [&] {
        return OracleText(shape, {}, parameters).loss_and_gradients(batch, masks).loss;
      };
      CHECK(difference_from_gradient(f, p, g.gradients.at(name)) == "");
      CHECK(g.gradients.at(name).dims == p.dims);
    }
  }
}

TEST_CASE("padding of a text changes nothing, its own tokens and their order do") {
  const OracleText model(classifier, {}, random_parameters(classifier, 8));
  const BatchGradients before = model.loss_and_gradients(texts, {});
  TextBatch other = texts;
  other.ids[7] = 6;   // padding of text 1
  other.ids[13] = 1;  // and of text 2
  const BatchGradients after = model.loss_and_gradients(other, {});
  CHECK(after.row_losses == before.row_losses);
  for (const auto& [name, gradient] : before.gradients) {
    CHECK(after.gradients.at(name).values == gradient.values);
  }
  other = texts;
  std::swap(other.ids[0], other.ids[1]);
  const BatchGradients swapped = model.loss_and_gradients(other, {});
  CHECK(std::abs(swapped.row_losses[0] - before.row_losses[0]) > 1e-6);
  CHECK(swapped.row_losses[1] == before.row_losses[1]);
}

TEST_CASE("a generated token's loss depends on what came before it alone") {
  const OracleText model(generator, {}, random_parameters(generator, 9));
  const std::vector<double> before = model.loss_and_gradients(sequences, {}).row_losses;
  for (std::size_t changed = 0; changed < generator.tokens; ++changed) {
    TextBatch other = sequences;
    other.ids[changed] = (other.ids[changed] + 1) % 6;
    const std::vector<double> after = model.loss_and_gradients(other, {}).row_losses;
    for (std::size_t t = 0; t < before.size(); ++t) {
      INFO("token " << changed << " changed, loss of row " << t);
      if (t >= changed && t < generator.tokens) {
        CHECK(std::abs(after[t] - before[t]) > 1e-9);
      } else {
        CHECK(after[t] == before[t]);
      }
    }
  }
}

TEST_CASE("training lowers the loss of the models of text") {
  OptimizerSettings settings;
  settings.lr = 0.02;
  for (const auto& [shape, batch] :
       {std::pair{classifier, texts}, {generator, sequences}, {tied, sequences}}) {
    OracleText model(shape, settings, random_parameters(shape, 21));
    const double before = model.train_step(batch, {}).loss;
    double after = before;
    for (int step = 0; step < 60; ++step) after = model.train_step(batch, {}).loss;
    CHECK(after < 0.3 * before);
  }
}
