// The whole models of text: the oracle's losses, gradients and updates, one set of bits on every
// layout and in any stages, and nothing of padding.
#include <catch2/catch.hpp>

#include <iostream>

#include "layers/gpt.hpp"
#include "layers/text_classifier.hpp"
#include "tests/core/dropout_mask.hpp"
#include "tests/layers/classifier_run.hpp"
#include "tests/layers/layer_run.hpp"
#include "tests/oracle/text.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t hidden = 48, ratio = 2, blocks = 2;

struct Text {
  bool generates = false;
  index_t vocabulary = 29;
  index_t tokens = 7;
  index_t heads = 12;
  float dropout = 0.0f;
};

StageModel make_model(const Text& text, const StagePart& part, ParameterSet& parameters,
                      TensorParallel& tp) {
  const TextSpec spec{.vocabulary = text.vocabulary,
                      .padded_vocabulary = round_up(text.vocabulary, tp.num_pieces()),
                      .tokens = text.tokens,
                      .hidden = hidden,
                      .heads = text.heads,
                      .feed_forward = ratio * hidden,
                      .dropout = text.dropout};
  if (text.generates) return make_gpt(spec, part, parameters, tp);
  return make_text_classifier(
      {.text = spec,
       .num_classes = ClassifierCase::classes,
       .padded_classes = round_up(ClassifierCase::classes, tp.num_pieces())},
      part, parameters, tp);
}

ClassifierCase text_case(const Text& text) {
  return {.make = [=](const StagePart& part, ParameterSet& parameters,
                      TensorParallel& tp) { return make_model(text, part, parameters, tp); },
          .inputs = text.tokens,
          .vocabulary = text.vocabulary,
          .has_lengths = !text.generates,
          .label_per_token = text.generates,
          .blocks = blocks,
          .num_samples = 3,
          .num_microbatches = 2};
}

oracle::TextShape shape_of(const Text& text) {
  return {.vocabulary = static_cast<std::size_t>(text.vocabulary),
          .tokens = static_cast<std::size_t>(text.tokens),
          .classes = text.generates ? 0u : static_cast<std::size_t>(ClassifierCase::classes),
          .hidden = hidden,
          .layers = blocks,
          .heads = static_cast<std::size_t>(text.heads),
          .mlp_ratio = ratio,
          .dropout = static_cast<double>(text.dropout)};
}

oracle::TextBatch oracle_batch(const ClassifierBatch& batch) {
  std::vector<double> weights;
  for (const float weight : batch.weights)
    weights.push_back(static_cast<double>(weight) / batch.sum_of_weights());
  return {{batch.tokens.begin(), batch.tokens.end()},
          {batch.lengths.begin(), batch.lengths.end()},
          {batch.labels.begin(), batch.labels.end()},
          weights};
}

// The oracle's steps on the same batches, masks and initial values.
struct Truth {
  std::vector<double> losses;
  oracle::NamedMatrices gradients;  // of the last step
  oracle::NamedMatrices parameters;
};

Truth truth_of(const Text& text, const ClassifierCase& what) {
  const oracle::TextShape shape = shape_of(text);
  oracle::OptimizerSettings settings;
  settings.lr = what.learning_rate;
  settings.weight_decay = what.adamw.weight_decay;
  settings.adamw = {what.adamw.beta1, what.adamw.beta2, what.adamw.eps};
  oracle::OracleText model(shape, settings, initial_of(oracle::zero_parameters(shape)));
  Truth truth;
  for (index_t i = 0; i < what.num_steps; ++i) {
    const index_t step = ClassifierCase::first_step + i;
    std::vector<oracle::Matrix> masks;
    const std::size_t count = text.dropout > 0.0f ? shape.blocks().num_dropouts() : 0;
    for (std::size_t layer = 0; layer < count; ++layer) {
      masks.push_back(dropout_mask(RankGroup{}.seed, step, static_cast<index_t>(layer), 0,
                                   what.batch_samples() * text.tokens, hidden,
                                   static_cast<double>(text.dropout)));
    }
    const oracle::TrainStep done = model.train_step(oracle_batch(batch_of(what, step)), masks);
    truth.losses.push_back(done.loss);
    truth.gradients = done.gradients;
  }
  truth.parameters = model.parameters();
  return truth;
}

// Loss sums are weighted, but not divided.
double mean_loss(const ClassifierCase& what, const ClassifierOutcome& got, std::size_t i) {
  const index_t step = ClassifierCase::first_step + static_cast<index_t>(i);
  return got.losses[i] / batch_of(what, step).sum_of_weights();
}

}  // namespace

TEST_CASE("losses and gradients of the models of text are the oracle's", "[text]") {
  double largest = 0.0;
  for (const Text& text : {Text{}, Text{.heads = 4, .dropout = 0.25f}, Text{.vocabulary = 3},
                           Text{.generates = true}, Text{.generates = true, .vocabulary = 5},
                           Text{.generates = true, .tokens = 66, .heads = 4, .dropout = 0.25f}}) {
    ClassifierCase what = text_case(text);
    what.pad_last_sample = what.class_weights = text.dropout > 0.0f;
    const Truth truth = truth_of(text, what);
    for (const index_t shards : {index_t{1}, index_t{4}, text.heads}) {
      const ClassifierOutcome got = run_classifier(what, {.shards = shards});
      INFO((text.generates ? "generator" : "classifier")
           << " of " << text.tokens << " tokens, " << text.vocabulary << " words, " << text.heads
           << " heads, dropout " << text.dropout << ", S = " << shards);
      CHECK(mean_loss(what, got, 0) == Approx(truth.losses[0]).epsilon(1e-6));
      REQUIRE(got.gradients.size() == truth.gradients.size());
      for (const auto& [name, gradient] : truth.gradients) {
        CHECK(difference_from_oracle(name, got.gradients.at(name), gradient, 5e-6, &largest) == "");
      }
    }
  }
  std::cout << "text: largest deviation of a gradient from the oracle, relative to the tensor's "
               "largest element: "
            << largest << "\n";
}

TEST_CASE("steps of AdamW on the models of text are the oracle's", "[text]") {
  for (const Text& text : {Text{.dropout = 0.1f}, Text{.generates = true, .dropout = 0.1f}}) {
    ClassifierCase what = text_case(text);
    what.num_steps = 5;
    what.learning_rate = 3e-3;
    // As in test_vit_classifier.cpp.
    what.adamw = {.eps = 1e-3, .weight_decay = 0.05};
    const Truth truth = truth_of(text, what);
    const ClassifierOutcome got =
        run_classifier(what, {.shards = 4, .tp = 2, .sequence_parallel = true});
    for (std::size_t i = 0; i < truth.losses.size(); ++i) {
      INFO("step " << i);
      CHECK(mean_loss(what, got, i) == Approx(truth.losses[i]).epsilon(1e-6));
    }
    for (const auto& [name, value] : truth.parameters) {
      CHECK(difference_from_oracle(name, got.parameters.at(name), value, 3e-6) == "");
    }
  }
}

TEST_CASE("the models of text have one result on every layout", "[text]") {
  // 7 and 35 rows are no multiples of 2, 3, 4, 6 and 12; 3 words leave most pieces without any.
  struct Run {
    index_t samples, steps, vocabulary;
  };
  for (const bool generates : {false, true}) {
    for (const Run run : {Run{1, 2, 29}, Run{5, 1, 29}, Run{5, 1, 3}}) {
      ClassifierCase what =
          text_case({.generates = generates, .vocabulary = run.vocabulary, .dropout = 0.25f});
      what.num_samples = run.samples;
      what.num_steps = run.steps;
      what.pad_last_sample = what.class_weights = run.samples > 1;
      what.learning_rate = 1e-3;
      check_all_layouts(what);
    }
  }
}

TEST_CASE("the models of text in stages are those in one", "[text]") {
  for (const bool generates : {false, true}) {
    ClassifierCase whole = text_case({.generates = generates, .dropout = 0.25f});
    whole.num_steps = 2;
    whole.learning_rate = 1e-3;
    const ClassifierOutcome base = run_classifier(whole, {.shards = 4});
    for (const std::vector<index_t>& stages : {std::vector<index_t>{1, 1}, {2, 0}, {0, 1, 1}}) {
      ClassifierCase cut = whole;
      cut.stages = stages;
      for (const bool sequence_parallel : {false, true}) {
        const ClassifierOutcome got =
            run_classifier(cut, {.shards = 4, .tp = 3, .sequence_parallel = sequence_parallel});
        CHECK(difference(got, base) == "");
        CHECK(got.ready == base.ready);
      }
    }
  }
}

TEST_CASE("which words pad a text changes no bit of losses and parameters", "[text]") {
  ClassifierCase what = text_case({.dropout = 0.25f});
  what.num_steps = 3;
  what.learning_rate = 1e-2;
  what.pad_last_sample = true;
  const RankGroup group{.shards = 4, .tp = 3, .sequence_parallel = true};
  const ClassifierOutcome base = run_classifier(what, group);
  ClassifierCase other = what;
  other.padding_seed = 1;
  REQUIRE(batch_of(what, 3).tokens != batch_of(other, 3).tokens);
  const ClassifierOutcome got = run_classifier(other, group);
  CHECK(bit_difference(got.losses, base.losses) == "");
  for (const auto& [name, value] : base.parameters) {
    INFO(name);
    CHECK(bit_difference(got.parameters.at(name), value) == "");
  }
  CHECK(bit_difference(got.gradients.at("embedding.weight"),
                       base.gradients.at("embedding.weight")) == "");
}

namespace {

// Texts of up to 5 tokens of 9, in passes of 5.
ClassifierCase cut_case(float dropout) {
  ClassifierCase what = text_case({.tokens = 9, .dropout = dropout});
  what.longest = 5;
  what.is_cut = true;
  what.num_steps = 2;
  what.learning_rate = 1e-3;
  what.adamw = {.eps = 1e-3, .weight_decay = 0.05};
  what.pad_last_sample = true;
  return what;
}

}  // namespace

TEST_CASE("passes with fewer tokens than the model has are the oracle's of all tokens", "[text]") {
  // The oracle pads every text to 9 tokens, with the masks of dropout that these have there.
  for (const float dropout : {0.0f, 0.25f}) {
    const ClassifierCase what = cut_case(dropout);
    const Truth truth = truth_of({.tokens = 9, .dropout = dropout}, what);
    for (const bool sequence_parallel : {false, true}) {
      const ClassifierOutcome got =
          run_classifier(what, {.shards = 4, .tp = 3, .sequence_parallel = sequence_parallel});
      for (std::size_t i = 0; i < truth.losses.size(); ++i)
        CHECK(mean_loss(what, got, i) == Approx(truth.losses[i]).epsilon(1e-6));
      for (const auto& [name, gradient] : truth.gradients)
        CHECK(difference_from_oracle(name, got.gradients.at(name), gradient, 5e-6) == "");
      for (const auto& [name, value] : truth.parameters)
        CHECK(difference_from_oracle(name, got.parameters.at(name), value, 3e-6) == "");
      // Places behind the pass's tokens: exactly none.
      const Floats& position = got.gradients.at("position");
      CHECK(bit_difference(Floats(position.begin() + 5 * hidden, position.end()),
                           Floats(4 * hidden, 0.0f)) == "");
    }
  }
}

TEST_CASE("passes with fewer tokens have one result on every layout and in any stages", "[text]") {
  for (const index_t samples : {1, 5}) {
    ClassifierCase what = cut_case(0.25f);
    what.num_samples = samples;
    check_all_layouts(what);
  }
  const ClassifierOutcome base = run_classifier(cut_case(0.25f), {.shards = 4});
  for (const std::vector<index_t>& stages : {std::vector<index_t>{1, 1}, {2, 0}, {0, 1, 1}}) {
    ClassifierCase what = cut_case(0.25f);
    what.stages = stages;
    for (const bool sequence_parallel : {false, true}) {
      const ClassifierOutcome got =
          run_classifier(what, {.shards = 4, .tp = 3, .sequence_parallel = sequence_parallel});
      CHECK(difference(got, base) == "");
    }
  }
}

TEST_CASE("every parameter of the models of text is announced once, last layer first", "[text]") {
  for (const bool generates : {false, true}) {
    const ClassifierOutcome got =
        run_classifier(text_case({.generates = generates}), {.shards = 4});
    std::vector<std::string> expected{"head.weight"};
    if (!generates) expected.emplace_back("head.bias");
    for (const std::string block : {"block.1.", "block.0."}) {
      for (const char* name :
           {"down.weight", "up.weight", "up.bias", "proj.weight", "qkv.weight", "qkv.bias"}) {
        expected.push_back(block + name);
      }
    }
    expected.insert(expected.end(), {"position", "embedding.weight"});
    CHECK(got.ready == expected);
  }
}
