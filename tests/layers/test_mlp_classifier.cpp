// The whole classifier, forward and backward: the oracle's loss and gradients, and one set of bits
// on every layout.
#include <catch2/catch.hpp>

#include <iostream>

#include "layers/mlp_classifier.hpp"
#include "tests/core/dropout_mask.hpp"
#include "tests/layers/classifier_run.hpp"
#include "tests/layers/layer_run.hpp"
#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/mlp.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t inputs = 37, hidden = 24, ratio = 2, blocks = 2;

ClassifierCase mlp_case(float dropout = 0.0f) {
  return {.make =
              [=](const StagePart& part, ParameterSet& parameters, TensorParallel& tp) {
                return make_mlp_classifier(
                    {.input_features = inputs,
                     .layers = blocks,
                     .hidden = hidden,
                     .feed_forward = ratio * hidden,
                     .dropout = dropout,
                     .num_classes = ClassifierCase::classes,
                     .padded_classes = round_up(ClassifierCase::classes, tp.num_pieces())},
                    part, parameters, tp);
              },
          .inputs = inputs,
          .blocks = blocks};
}

oracle::BatchGradients truth_of(const ClassifierCase& what, float dropout) {
  const oracle::MlpShape shape{.inputs = inputs,
                               .hidden = hidden,
                               .layers = blocks,
                               .mlp_ratio = ratio,
                               .classes = ClassifierCase::classes,
                               .dropout = static_cast<double>(dropout)};
  const ClassifierBatch batch = batch_of(what, ClassifierCase::first_step);
  const index_t rows = what.batch_samples();
  std::vector<bool> is_real;
  for (const float weight : batch.weights) is_real.push_back(weight != 0.0f);
  std::vector<oracle::Matrix> masks;
  for (index_t block = 0; dropout > 0.0f && block < blocks; ++block) {
    masks.push_back(dropout_mask(RankGroup{}.seed, ClassifierCase::first_step, block, 0, rows,
                                 hidden, static_cast<double>(dropout)));
  }
  return oracle::OracleMlp(shape, {}, initial_of(oracle::zero_parameters(shape)))
      .loss_and_gradients(
          {static_cast<std::size_t>(rows), inputs, {batch.x.begin(), batch.x.end()}},
          {batch.labels.begin(), batch.labels.end()}, oracle::mean_weights(is_real), masks);
}

}  // namespace

TEST_CASE("loss and gradients of the classifier are the oracle's", "[mlp]") {
  double largest = 0.0;
  const auto check = [&](const ClassifierCase& what, float dropout) {
    const oracle::BatchGradients truth = truth_of(what, dropout);
    for (const index_t shards : {1, 4, 12}) {
      const ClassifierOutcome got = run_classifier(what, {.shards = shards});
      CHECK(got.losses[0] / static_cast<double>(what.real_samples()) ==
            Approx(truth.loss).epsilon(1e-6));
      REQUIRE(got.gradients.size() == truth.gradients.size());
      // As for single layers; measured 7e-7 through all of them.
      for (const auto& [name, gradient] : truth.gradients) {
        CHECK(difference_from_oracle(name, got.gradients.at(name), gradient, 3e-6, &largest) == "");
      }
    }
  };
  check(mlp_case(), 0.0f);
  check(mlp_case(0.25f), 0.25f);
  ClassifierCase padded = mlp_case();
  padded.pad_last_sample = true;
  check(padded, 0.0f);
  ClassifierCase one = mlp_case();
  one.num_samples = one.num_microbatches = 1;
  check(one, 0.0f);
  std::cout << "classifier: largest deviation of a gradient from the oracle, relative to the "
               "tensor's largest element: "
            << largest << "\n";
}

TEST_CASE("the classifier has one result on every layout", "[mlp]") {
  for (const bool hostile : {false, true}) {
    for (const index_t samples : {1, 5, 13}) {
      ClassifierCase what = mlp_case(0.25f);
      what.num_samples = samples;
      what.hostile = hostile;
      what.pad_last_sample = samples > 1;
      check_all_layouts(what);
    }
  }
}

TEST_CASE("the classifier in stages is the classifier in one", "[mlp]") {
  const ClassifierCase whole = mlp_case(0.25f);
  const ClassifierOutcome base = run_classifier(whole, {.shards = 4});
  for (const std::vector<index_t>& stages : {std::vector<index_t>{1, 1}, {2, 0}, {0, 1, 1}}) {
    ClassifierCase cut = whole;
    cut.stages = stages;
    for (const bool sequence_parallel : {false, true}) {
      const RankGroup group{.shards = 4, .tp = 3, .sequence_parallel = sequence_parallel};
      const ClassifierOutcome got = run_classifier(cut, group);
      CHECK(difference(got, base) == "");
      CHECK(got.ready == base.ready);
    }
  }
}

TEST_CASE("every parameter is announced once, last layer first", "[mlp]") {
  const ClassifierOutcome got = run_classifier(mlp_case(), {.shards = 4});
  // Neither norms nor biases of row-parallel layers: those are complete when the lane is.
  CHECK(got.ready == std::vector<std::string>{"head.weight", "head.bias", "block.1.down.weight",
                                              "block.1.up.weight", "block.1.up.bias",
                                              "block.0.down.weight", "block.0.up.weight",
                                              "block.0.up.bias", "stem.weight"});
}
