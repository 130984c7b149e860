#include "tests/apps/oracle_run.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>

#include "tests/core/dropout_mask.hpp"
#include "tests/oracle/cross_entropy.hpp"
#include "tests/oracle/mlp.hpp"
#include "tests/oracle/text.hpp"
#include "tests/oracle/vit.hpp"

namespace weft::testing {

namespace {

std::size_t size_of(index_t n) { return static_cast<std::size_t>(n); }

oracle::MlpShape mlp_shape(const Plan& plan) {
  return {.hidden = size_of(plan.model.hidden),
          .layers = size_of(plan.model.layers),
          .mlp_ratio = size_of(plan.model.mlp_ratio),
          .dropout = plan.model.dropout};
}

oracle::VitShape vit_shape(const Plan& plan) {
  return {.patch = size_of(plan.model.patch),
          .hidden = size_of(plan.model.hidden),
          .layers = size_of(plan.model.layers),
          .heads = size_of(plan.model.heads),
          .mlp_ratio = size_of(plan.model.mlp_ratio),
          .dropout = plan.model.dropout};
}

oracle::TextShape text_shape(const Plan& plan) {
  const SampleShape sample = sample_shape(plan.task);
  return {.vocabulary = size_of(sample.vocabulary),
          .tokens = size_of(sample.tokens),
          .classes = plan.is_gpt() ? 0 : size_of(sample.classes),
          .tied = plan.ties_embedding(),
          .hidden = size_of(plan.model.hidden),
          .layers = size_of(plan.model.layers),
          .heads = size_of(plan.model.heads),
          .mlp_ratio = size_of(plan.model.mlp_ratio),
          .dropout = plan.model.dropout};
}

oracle::OptimizerSettings settings_of(const Plan& plan) {
  const OptimizerPlan& optimizer = plan.optimizer;
  return {
      .kind = optimizer.kind == "sgd" ? oracle::OptimizerKind::sgd : oracle::OptimizerKind::adamw,
      .lr = optimizer.lr,
      .weight_decay = optimizer.weight_decay,
      .clip_norm = optimizer.clip_norm,
      .momentum = optimizer.momentum,
      .adamw = {optimizer.beta1, optimizer.beta2, optimizer.eps},
      .schedule = optimizer.schedule.kind == "cosine" ? oracle::ScheduleKind::cosine
                                                      : oracle::ScheduleKind::constant,
      .warmup_steps = optimizer.schedule.warmup_steps,
      .total_steps = plan.num_steps(),
      .final_fraction = optimizer.schedule.final_fraction};
}

// A global batch as the oracle takes it.
struct Samples {
  oracle::Matrix x;  // images, or
  std::vector<int> ids;
  std::vector<std::size_t> lengths;
  std::vector<int> labels;
  std::vector<bool> is_real;    // of labels
  std::vector<double> weights;  // of them

  explicit Samples(const HostBatch& batch)
      : ids(batch.tokens.begin(), batch.tokens.end()),
        lengths(batch.lengths.begin(), batch.lengths.end()),
        labels(batch.labels.begin(), batch.labels.end()) {
    if (ids.empty())
      x = {size_of(batch.num_rows()), 3072, {batch.features.begin(), batch.features.end()}};
    for (const float weight : batch.weight) is_real.push_back(weight != 0.0f);
    weights = oracle::mean_weights(is_real);
  }

  oracle::TextBatch texts() const { return {ids, lengths, labels, weights}; }
};

// What a run needs of a model.
struct Model {
  std::function<oracle::TrainStep(const Samples&, const std::vector<oracle::Matrix>& masks)> step;
  // Without dropout, as an evaluation: the mean loss; and of images the logits.
  std::function<double(const Samples&)> loss;
  std::function<oracle::Matrix(const oracle::Matrix& x)> logits = {};
  std::size_t num_dropouts = 0;
};

template <class OracleShape>
oracle::NamedMatrices parameters_of(const OracleShape& shape, const NamedFloats& initial) {
  oracle::NamedMatrices parameters = oracle::zero_parameters(shape);
  if (parameters.size() != initial.size()) throw std::runtime_error("number of parameters");
  for (auto& [name, p] : parameters) {
    const Floats& values = initial.at(name);
    if (values.size() != p.size()) throw std::runtime_error(name + ": size");
    p.values.assign(values.begin(), values.end());
  }
  return parameters;
}

Model make_text_model(const Plan& plan, const NamedFloats& initial) {
  const oracle::TextShape shape = text_shape(plan);
  const auto model =
      std::make_shared<oracle::OracleText>(shape, settings_of(plan), parameters_of(shape, initial));
  return {.step =
              [=](const Samples& samples, const std::vector<oracle::Matrix>& masks) {
                return model->train_step(samples.texts(), masks);
              },
          .loss =
              [=](const Samples& samples) {
                return model->loss_and_gradients(samples.texts(), {}).loss;
              },
          .num_dropouts = shape.blocks().num_dropouts()};
}

template <class Oracle, class OracleShape>
Model make_model(const Plan& plan, const OracleShape& shape, std::size_t num_dropouts,
                 const NamedFloats& initial) {
  const auto model =
      std::make_shared<Oracle>(shape, settings_of(plan), parameters_of(shape, initial));
  return {.step =
              [=](const Samples& samples, const std::vector<oracle::Matrix>& masks) {
                return model->train_step(samples.x, samples.labels, samples.weights, masks);
              },
          .loss =
              [=](const Samples& samples) {
                return oracle::softmax_cross_entropy(model->logits(samples.x), samples.labels,
                                                     samples.weights)
                    .loss;
              },
          .logits = [=](const oracle::Matrix& x) { return model->logits(x); },
          .num_dropouts = num_dropouts};
}

Model make_model(const Plan& plan, const NamedFloats& initial) {
  if (plan.is_gpt() || plan.is_text_encoder()) return make_text_model(plan, initial);
  if (plan.is_vit()) {
    const oracle::VitShape shape = vit_shape(plan);
    return make_model<oracle::OracleVit>(plan, shape, shape.num_dropouts(), initial);
  }
  const oracle::MlpShape shape = mlp_shape(plan);
  return make_model<oracle::OracleMlp>(plan, shape, shape.layers, initial);
}

std::vector<oracle::Matrix> masks_of(const Plan& plan, std::size_t num_dropouts, index_t step) {
  std::vector<oracle::Matrix> masks;
  for (std::size_t layer = 0; plan.model.dropout > 0.0 && layer < num_dropouts; ++layer) {
    masks.push_back(dropout_mask(plan.numerics.seed, step, static_cast<index_t>(layer), 0,
                                 plan.batch.global * plan.tokens_per_sample(), plan.model.hidden,
                                 plan.model.dropout));
  }
  return masks;
}

// Class of a row's largest logit. Throws where another one is so near that rounding to f32 might
// decide: then there would be nothing to compare.
index_t predicted_class(const oracle::Matrix& logits, std::size_t row) {
  const auto begin = logits.values.begin() + static_cast<std::ptrdiff_t>(row * logits.cols);
  std::vector<double> values(begin, begin + static_cast<std::ptrdiff_t>(logits.cols));
  const auto best = std::max_element(values.begin(), values.end()) - values.begin();
  std::sort(values.begin(), values.end());
  if (values.back() - values[values.size() - 2] < 1e-5) throw std::runtime_error("logits tie");
  return best;
}

// In one piece, without augmentation, dropout or padding.
void evaluate(const Model& model, const TrainingData& data, OracleRun& run) {
  const BatchReader reader(*data.samples);
  const auto count = static_cast<index_t>(data.split.validation.size());
  HostBatch batch;
  reader.read_into(EvalSampler(data.split.validation, count).indices_of(0), {0, count}, batch);
  const Samples samples(batch);
  run.validation_loss = model.loss(samples);
  if (!model.logits) return;
  const oracle::Matrix logits = model.logits(samples.x);
  run.confusion = ConfusionMatrix(static_cast<index_t>(logits.cols));
  for (std::size_t row = 0; row < samples.labels.size(); ++row)
    run.confusion.add(samples.labels[row], predicted_class(logits, row));
}

}  // namespace

OracleRun run_oracle(const Plan& plan, const TrainingData& data, const NamedFloats& initial,
                     const std::vector<index_t>& left_out) {
  const Model model = make_model(plan, initial);
  Sampler sampler = training_sampler(plan, data);
  const BatchReader reader(
      *data.samples, plan.task.augment ? std::optional(plan.numerics.seed) : std::nullopt, {});
  OracleRun run;
  HostBatch batch;
  for (index_t step = 0; step < plan.num_steps(); ++step) {
    if (std::count(left_out.begin(), left_out.end(), step) > 0) {
      run.steps.push_back({});
      continue;
    }
    BatchIndices indices = sampler.indices_of(step);
    indices.tokens = 0;  // the oracle pads all texts to their full length
    reader.read_into(indices, {0, plan.batch.global}, batch);
    const Samples samples(batch);
    const oracle::TrainStep done = model.step(samples, masks_of(plan, model.num_dropouts, step));
    run.steps.push_back(
        {.loss = done.loss,
         .gradient_norm = done.gradient_norm,
         .learning_rate = done.lr,
         .num_real = std::count(samples.is_real.begin(), samples.is_real.end(), true) /
                     sample_shape(plan.task).labels});
  }
  evaluate(model, data, run);
  return run;
}

}  // namespace weft::testing
