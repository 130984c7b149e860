// The whole classifier, forward and backward: the oracle's loss and gradients, and one set of bits
// on every layout.
#include <catch2/catch.hpp>

#include <iostream>
#include <mutex>
#include <stdexcept>

#include "core/hash.hpp"
#include "layers/mlp_classifier.hpp"
#include "tests/core/dropout_mask.hpp"
#include "tests/core/shard_values.hpp"
#include "tests/layers/layer_run.hpp"
#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/mlp.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t inputs = 37, hidden = 24, ratio = 2, blocks = 2, classes = 10;
constexpr index_t step = 3;

struct Model {
  index_t num_rows = 5;  // a microbatch
  index_t num_microbatches = 3;
  float dropout = 0.0f;
  bool hostile = false;
  bool pad_last_row = false;
};

struct Outcome {
  LossSums sums;
  std::map<std::string, Floats> gradients;
  std::vector<std::string> ready;  // parameters in the order in which they were announced
};

Floats data_of(const Model& model, const std::string& name, index_t n) {
  const auto size = static_cast<std::size_t>(n);
  // Hostile inputs, not weights: a network of 1e8s has no finite loss to compare.
  if (name == "x" && model.hostile) return hostile_floats(size, hash64(name));
  const bool is_gain = name.ends_with(".gain");
  return random_floats(size, hash64(name), is_gain ? 0.5f : -0.4f, is_gain ? 1.5f : 0.4f);
}

// A gradient as one rank holds it.
struct LocalGradient {
  std::string name;
  ShardSpec spec;
  Floats values;
};

struct Batch {
  Floats x;
  std::vector<std::int32_t> labels;
  Floats weights;
};

Batch batch_of(const Model& model) {
  const index_t rows = model.num_rows * model.num_microbatches;
  Batch batch{data_of(model, "x", rows * inputs), {}, Floats(static_cast<std::size_t>(rows), 1.0f)};
  for (index_t i = 0; i < rows; ++i) batch.labels.push_back(static_cast<std::int32_t>(i * 3 % 10));
  if (model.pad_last_row) batch.weights.back() = 0.0f;
  return batch;
}

float scale_of(const Model& model) {
  const index_t rows = model.num_rows * model.num_microbatches - (model.pad_last_row ? 1 : 0);
  return static_cast<float>(1.0 / static_cast<double>(rows));
}

Microbatch microbatch_of(Context& context, const Model& model, const Batch& batch, index_t m) {
  const auto take = [&](const auto& from, index_t row_length) {
    using T = typename std::decay_t<decltype(from)>::value_type;
    Tensor to(context.arena, MemoryKind::input, {model.num_rows, row_length}, DTypeOf<T>::value);
    copy_to_device(to.raw(), from.data() + m * model.num_rows * row_length, to.num_bytes());
    return to;
  };
  return {take(batch.x, inputs), take(batch.labels, 1), take(batch.weights, 1), scale_of(model)};
}

Outcome run_rank(const Model& model, TpRank& rank, std::vector<LocalGradient>& local) {
  ParameterSet parameters;
  const index_t shards = rank.tp.num_pieces();
  StageModel stage = make_mlp_classifier({.input_features = inputs,
                                          .layers = blocks,
                                          .hidden = hidden,
                                          .feed_forward = ratio * hidden,
                                          .dropout = model.dropout,
                                          .num_classes = classes,
                                          .padded_classes = round_up(classes, shards)},
                                         {.blocks = {0, blocks}}, parameters, rank.tp);
  parameters.allocate(rank.context);
  Floats gradients(static_cast<std::size_t>(parameters.flat_elements()), NAN);
  parameters.clear_gaps(gradients.data());
  parameters.bind_gradients(gradients.data());
  for (const auto& p : parameters.all()) {
    scatter(p->spec, data_of(model, p->name, p->spec.global().num_elements()), p->value);
  }
  Outcome out;
  const Batch batch = batch_of(model);
  for (index_t m = 0; m < model.num_microbatches; ++m) {
    const Pass pass{.step = step,
                    .first_sample = m * model.num_rows,
                    .num_samples = model.num_rows,
                    .first_of_lane = m == 0};
    StageModel::State state;
    out.sums +=
        stage.forward(rank.context, microbatch_of(rank.context, model, batch, m), {}, &state, pass)
            .sums;
    const bool is_last = m + 1 == model.num_microbatches;
    stage.backward(rank.context, state, {}, pass, [&](const Parameter& p, index_t shard) {
      if (!is_last || shard != p.spec.owned().begin) return;
      out.ready.push_back(p.name);
    });
  }
  rank.fold_token_blocks(parameters);
  for (const auto& p : parameters.all()) {
    local.push_back(
        {p->name, p->spec, Floats(p->gradient, p->gradient + p->spec.local_elements())});
  }
  // Pads of the head: stored gradients are +0.
  for (const auto& p : parameters.all()) {
    for (index_t s = p->spec.owned().begin; s < p->spec.owned().end; ++s) {
      for (index_t i = p->spec.valid(s).num_elements(); i < p->spec.block(s).num_elements(); ++i) {
        if (p->gradient_of(s)[i] != 0.0f) throw std::runtime_error("gradient of a pad");
      }
    }
  }
  return out;
}

Outcome run_model(const Model& model, const RankGroup& group) {
  Outcome result;
  std::mutex mutex;
  run_group(group, [&](TpRank& rank) {
    std::vector<LocalGradient> local;
    Outcome mine = run_rank(model, rank, local);
    const std::lock_guard lock(mutex);
    if (result.ready.empty())
      result = std::move(mine);
    else if (bit_difference<double>({mine.sums.loss}, {result.sums.loss}) != "") {
      throw std::runtime_error("losses of ranks differ");
    }
    for (const LocalGradient& part : local) {
      Floats& global = result.gradients[part.name];
      const bool is_new = global.empty();
      if (is_new) global.resize(static_cast<std::size_t>(part.spec.global().num_elements()));
      Floats merged = global;
      gather(part.spec, part.values.data(), merged);
      if (!is_new && part.spec.is_replicated() && bit_difference(merged, global) != "") {
        throw std::runtime_error(part.name + ": copies differ");
      }
      global = std::move(merged);
    }
  });
  return result;
}

std::string difference(const Outcome& got, const Outcome& expected) {
  std::string all = bit_difference<double>({got.sums.loss}, {expected.sums.loss});
  if (got.sums.correct != expected.sums.correct) all += "correct rows";
  for (const auto& [name, gradient] : expected.gradients) {
    const std::string fault = bit_difference(got.gradients.at(name), gradient);
    if (!fault.empty()) all += name + ": " + fault + "; ";
  }
  return all;
}

oracle::BatchGradients truth_of(const Model& model) {
  const oracle::MlpShape shape{.inputs = inputs,
                               .hidden = hidden,
                               .layers = blocks,
                               .mlp_ratio = ratio,
                               .classes = classes,
                               .dropout = static_cast<double>(model.dropout)};
  oracle::NamedMatrices parameters = oracle::zero_parameters(shape);
  for (auto& [name, p] : parameters) {
    const Floats values = data_of(model, name, static_cast<index_t>(p.size()));
    p.values.assign(values.begin(), values.end());
  }
  const Batch batch = batch_of(model);
  const index_t rows = model.num_rows * model.num_microbatches;
  std::vector<bool> is_real;
  for (const float weight : batch.weights) is_real.push_back(weight != 0.0f);
  std::vector<oracle::Matrix> masks;
  for (index_t block = 0; model.dropout > 0.0f && block < blocks; ++block) {
    masks.push_back(dropout_mask(RankGroup{}.seed, step, block, 0, rows, hidden,
                                 static_cast<double>(model.dropout)));
  }
  return oracle::OracleMlp(shape, {}, parameters)
      .loss_and_gradients(
          {static_cast<std::size_t>(rows), inputs, {batch.x.begin(), batch.x.end()}},
          {batch.labels.begin(), batch.labels.end()}, oracle::mean_weights(is_real), masks);
}

}  // namespace

TEST_CASE("loss and gradients of the classifier are the oracle's", "[mlp]") {
  double largest = 0.0;
  for (const Model& model : {Model{}, Model{.dropout = 0.25f}, Model{.pad_last_row = true},
                             Model{.num_rows = 1, .num_microbatches = 1}}) {
    const oracle::BatchGradients truth = truth_of(model);
    for (const index_t shards : {1, 4, 12}) {
      const Outcome got = run_model(model, {.shards = shards});
      const double count =
          static_cast<double>(model.num_rows * model.num_microbatches - model.pad_last_row);
      CHECK(got.sums.loss / count == Approx(truth.loss).epsilon(1e-6));
      REQUIRE(got.gradients.size() == truth.gradients.size());
      // As for single layers; measured 7e-7 through all of them.
      for (const auto& [name, gradient] : truth.gradients) {
        CHECK(difference_from_oracle(name, got.gradients.at(name), gradient, 3e-6, &largest) == "");
      }
    }
  }
  std::cout << "classifier: largest deviation of a gradient from the oracle, relative to the "
               "tensor's largest element: "
            << largest << "\n";
}

TEST_CASE("the classifier has one result on every layout", "[mlp]") {
  for (const bool hostile : {false, true}) {
    for (const index_t rows : {1, 5, 13}) {
      const Model model{
          .num_rows = rows, .dropout = 0.25f, .hostile = hostile, .pad_last_row = rows > 1};
      for (const index_t shards : {1, 2, 3, 4, 6, 12}) {
        const Outcome base = run_model(model, {.shards = shards});
        for (int tp = 1; tp <= static_cast<int>(shards); ++tp) {
          for (const bool sequence_parallel : {false, true}) {
            INFO("S = " << shards << ", tp = " << tp << ", T = " << rows << ", hostile " << hostile
                        << (sequence_parallel ? ", sequence parallel" : ""));
            const RankGroup group{
                .shards = shards, .tp = tp, .sequence_parallel = sequence_parallel};
            REQUIRE(difference(run_model(model, group), base) == "");
          }
        }
        for (const int threads : several_threads()) {
          REQUIRE(difference(run_model(model, {.shards = shards, .threads = threads}), base) == "");
        }
      }
    }
  }
}

TEST_CASE("every parameter is announced once, last layer first", "[mlp]") {
  const Outcome got = run_model({}, {.shards = 4});
  // Neither norms nor biases of row-parallel layers: those are complete when the lane is.
  CHECK(got.ready == std::vector<std::string>{"head.weight", "head.bias", "block.1.down.weight",
                                              "block.1.up.weight", "block.1.up.bias",
                                              "block.0.down.weight", "block.0.up.weight",
                                              "block.0.up.bias", "stem.weight"});
}
