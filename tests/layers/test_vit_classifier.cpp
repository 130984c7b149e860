// The whole vision transformer: the oracle's losses, gradients and updates, and one set of bits on
// every layout and in any stages.
#include <catch2/catch.hpp>

#include <iostream>

#include "layers/vit_classifier.hpp"
#include "tests/core/dropout_mask.hpp"
#include "tests/layers/classifier_run.hpp"
#include "tests/layers/layer_run.hpp"
#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/vit.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t hidden = 48, ratio = 2, blocks = 2;

struct Vit {
  index_t side = 32;
  index_t patch = 8;
  index_t heads = 12;
  float dropout = 0.0f;

  kernels::PatchShape patches() const { return {.channels = 3, .side = side, .patch = patch}; }
};

ClassifierCase vit_case(const Vit& vit) {
  return {.make =
              [=](const StagePart& part, ParameterSet& parameters, TensorParallel& tp) {
                return make_vit_classifier(
                    {.patches = vit.patches(),
                     .layers = blocks,
                     .hidden = hidden,
                     .heads = vit.heads,
                     .feed_forward = ratio * hidden,
                     .dropout = vit.dropout,
                     .num_classes = ClassifierCase::classes,
                     .padded_classes = round_up(ClassifierCase::classes, tp.num_pieces())},
                    part, parameters, tp);
              },
          .inputs = vit.patches().pixels(),
          .blocks = blocks,
          .num_samples = 2,
          .num_microbatches = 2};
}

oracle::VitShape shape_of(const Vit& vit) {
  return {.side = static_cast<std::size_t>(vit.side),
          .patch = static_cast<std::size_t>(vit.patch),
          .hidden = hidden,
          .layers = blocks,
          .heads = static_cast<std::size_t>(vit.heads),
          .mlp_ratio = ratio,
          .classes = ClassifierCase::classes,
          .dropout = static_cast<double>(vit.dropout)};
}

// The oracle's steps on the same batches, masks and initial values.
struct Truth {
  std::vector<double> losses;
  oracle::NamedMatrices gradients;  // of the last step
  oracle::NamedMatrices parameters;
};

Truth truth_of(const Vit& vit, const ClassifierCase& what) {
  const oracle::VitShape shape = shape_of(vit);
  oracle::OptimizerSettings settings;
  settings.lr = what.learning_rate;
  settings.weight_decay = what.adamw.weight_decay;
  settings.adamw = {what.adamw.beta1, what.adamw.beta2, what.adamw.eps};
  oracle::OracleVit model(shape, settings, initial_of(oracle::zero_parameters(shape)));
  Truth truth;
  for (index_t i = 0; i < what.num_steps; ++i) {
    const index_t step = ClassifierCase::first_step + i;
    const ClassifierBatch batch = batch_of(what, step);
    std::vector<bool> is_real;
    for (const float weight : batch.weights) is_real.push_back(weight != 0.0f);
    std::vector<oracle::Matrix> masks;
    for (std::size_t layer = 0; vit.dropout > 0.0f && layer < shape.num_dropouts(); ++layer) {
      masks.push_back(dropout_mask(RankGroup{}.seed, step, static_cast<index_t>(layer), 0,
                                   what.batch_samples() * vit.patches().tokens(), hidden,
                                   static_cast<double>(vit.dropout)));
    }
    const oracle::TrainStep done = model.train_step(
        {is_real.size(), shape.inputs(), {batch.x.begin(), batch.x.end()}},
        {batch.labels.begin(), batch.labels.end()}, oracle::mean_weights(is_real), masks);
    truth.losses.push_back(done.loss);
    truth.gradients = done.gradients;
  }
  truth.parameters = model.parameters();
  return truth;
}

}  // namespace

TEST_CASE("loss and gradients of the transformer are the oracle's", "[vit]") {
  double largest = 0.0;
  for (const Vit& vit : {Vit{}, Vit{.heads = 4}, Vit{.patch = 4}, Vit{.dropout = 0.25f}}) {
    ClassifierCase what = vit_case(vit);
    what.pad_last_sample = vit.heads == 4;
    const Truth truth = truth_of(vit, what);
    for (const index_t shards : {index_t{1}, index_t{4}, vit.heads}) {
      const ClassifierOutcome got = run_classifier(what, {.shards = shards});
      INFO("patch " << vit.patch << ", " << vit.heads << " heads, dropout " << vit.dropout
                    << ", S = " << shards);
      CHECK(got.losses[0] / static_cast<double>(what.real_samples()) ==
            Approx(truth.losses[0]).epsilon(1e-6));
      REQUIRE(got.gradients.size() == truth.gradients.size());
      // Of the keys' biases the gradient is 0 but for rounding: what all keys have in common does
      // not change a softmax. They share a tensor with those of queries and values.
      for (const auto& [name, gradient] : truth.gradients) {
        CHECK(difference_from_oracle(name, got.gradients.at(name), gradient, 5e-6, &largest) == "");
      }
    }
  }
  std::cout << "transformer: largest deviation of a gradient from the oracle, relative to the "
               "tensor's largest element: "
            << largest << "\n";
}

TEST_CASE("steps of AdamW on the transformer are the oracle's", "[vit]") {
  double largest = 0.0;
  for (const Vit& vit : {Vit{.dropout = 0.1f}, Vit{.patch = 4, .heads = 4}}) {
    ClassifierCase what = vit_case(vit);
    what.num_steps = 5;
    what.learning_rate = 3e-3;
    // AdamW makes a step of rounding errors where a gradient is nothing else (the keys' biases); an
    // eps far above them leaves the others as they are.
    what.adamw = {.eps = 1e-3, .weight_decay = 0.05};
    const Truth truth = truth_of(vit, what);
    const ClassifierOutcome got =
        run_classifier(what, {.shards = 4, .tp = 2, .sequence_parallel = true});
    for (std::size_t i = 0; i < truth.losses.size(); ++i) {
      INFO("step " << i);
      CHECK(got.losses[i] / static_cast<double>(what.real_samples()) ==
            Approx(truth.losses[i]).epsilon(1e-6));
    }
    CHECK(truth.losses.back() < 0.8 * truth.losses.front());
    for (const auto& [name, value] : truth.parameters) {
      CHECK(difference_from_oracle(name, got.parameters.at(name), value, 3e-6, &largest) == "");
    }
  }
  std::cout << "transformer: largest deviation of a parameter from the oracle after five steps, "
               "relative to the tensor's largest element: "
            << largest << "\n";
}

TEST_CASE("the transformer has one result on every layout", "[vit]") {
  // 16 tokens a sample; 16 and 80 rows are no multiples of 3, 6 and 12.
  struct Run {
    index_t samples, steps;
    bool hostile;
  };
  for (const Run run : {Run{1, 2, false}, Run{5, 1, false}, Run{5, 1, true}}) {
    ClassifierCase what = vit_case({.side = 16, .patch = 4, .dropout = 0.25f});
    what.num_samples = run.samples;
    what.num_steps = run.steps;
    what.hostile = run.hostile;
    what.pad_last_sample = run.samples > 1;
    what.learning_rate = 1e-3;
    check_all_layouts(what);
  }
}

TEST_CASE("the transformer in stages is the transformer in one", "[vit]") {
  ClassifierCase whole = vit_case({.side = 16, .patch = 4, .dropout = 0.25f});
  whole.num_steps = 2;
  whole.learning_rate = 1e-3;
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

TEST_CASE("every parameter of the transformer is announced once, last layer first", "[vit]") {
  const ClassifierOutcome got = run_classifier(vit_case({}), {.shards = 4});
  std::vector<std::string> expected{"head.weight", "head.bias"};
  for (const std::string block : {"block.1.", "block.0."}) {
    for (const char* name :
         {"down.weight", "up.weight", "up.bias", "proj.weight", "qkv.weight", "qkv.bias"}) {
      expected.push_back(block + name);
    }
  }
  expected.insert(expected.end(), {"position", "patch.weight"});
  CHECK(got.ready == expected);
}
