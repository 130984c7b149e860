#include "tests/layers/classifier_run.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>

#include "core/hash.hpp"
#include "tests/core/shard_values.hpp"

namespace weft::testing {

namespace {

// A stage with all that a rank holds of it.
struct Stage {
  ParameterSet parameters;
  StageModel model;
  Floats gradients;
  std::unique_ptr<Optimizer> optimizer;

  Stage(const ClassifierCase& what, const StagePart& part, TpRank& rank)
      : model(what.make(part, parameters, rank.tp)) {
    parameters.allocate(rank.context);
    gradients.assign(static_cast<std::size_t>(parameters.flat_elements()), NAN);
    parameters.clear_gaps(gradients.data());
    parameters.bind_gradients(gradients.data());
    for (const auto& p : parameters.all()) {
      scatter(p->spec, initial_of(p->name, p->spec.global().num_elements()), p->value);
    }
    optimizer = make_adamw(rank.context, what.adamw, everything_of(parameters));
  }
};

using Stages = std::vector<std::unique_ptr<Stage>>;

Stages stages_of(const ClassifierCase& what, TpRank& rank) {
  const std::vector<index_t> counts =
      what.stages.empty() ? std::vector<index_t>{what.blocks} : what.stages;
  Stages stages;
  index_t begin = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const StagePart part{.blocks = {begin, begin + counts[i]},
                         .is_first = i == 0,
                         .is_last = i + 1 == counts.size()};
    stages.push_back(std::make_unique<Stage>(what, part, rank));
    begin += counts[i];
  }
  return stages;
}

Microbatch microbatch_of(Context& context, const ClassifierCase& what, const ClassifierBatch& batch,
                         index_t m) {
  const auto take = [&](const auto& from, index_t row_length) {
    using T = typename std::decay_t<decltype(from)>::value_type;
    Tensor to(context.arena, MemoryKind::input, {what.num_samples, row_length}, DTypeOf<T>::value);
    copy_to_device(to.raw(), from.data() + m * what.num_samples * row_length, to.num_bytes());
    return to;
  };
  std::vector<std::int32_t> cut;
  for (index_t i = 0; what.is_cut && i < what.batch_samples(); ++i) {
    const auto sample = batch.tokens.begin() + i * what.inputs;
    cut.insert(cut.end(), sample, sample + what.most_tokens());
  }
  const auto take_tokens = [&] {
    return what.is_cut ? take(cut, what.most_tokens()) : take(batch.tokens, what.inputs);
  };
  const index_t label_rows = what.label_rows_per_sample();
  return {.x = what.vocabulary > 0 ? take_tokens() : take(batch.x, what.inputs),
          .lengths = what.has_lengths ? take(batch.lengths, 1) : Tensor(),
          .tokens = what.is_cut ? what.most_tokens() : 0,
          .labels = take(batch.labels, label_rows),
          .weights = take(batch.weights, label_rows),
          .scale = static_cast<float>(1.0 / batch.sum_of_weights())};
}

// One microbatch forward and backward through all stages.
LossSums run_microbatch(Stages& stages, TpRank& rank, const Microbatch& batch, const Pass& pass,
                        const GradientReady& ready) {
  std::vector<StageModel::State> states(stages.size());
  StageModel::Output output;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    output =
        stages[i]->model.forward(rank.context, batch, std::move(output.boundary), &states[i], pass);
    const Shape boundary = stages[i]->model.boundary_shape(pass.num_samples, batch.tokens);
    if (output.boundary && output.boundary.num_elements() != boundary.num_elements()) {
      throw std::runtime_error("size of the boundary");
    }
  }
  Tensor gradient;
  for (std::size_t i = stages.size(); i-- > 0;) {
    gradient = stages[i]->model.backward(rank.context, states[i], std::move(gradient), pass, ready);
  }
  if (gradient) throw std::runtime_error("gradient of the first stage's input");
  return output.sums;
}

void check_pads(const Parameter& p) {
  for (index_t s = p.spec.owned().begin; s < p.spec.owned().end; ++s) {
    for (index_t i = p.spec.valid(s).num_elements(); i < p.spec.block(s).num_elements(); ++i) {
      if (p.gradient_of(s)[i] != 0.0f) throw std::runtime_error("gradient of a pad: " + p.name);
    }
  }
}

// A tensor as one rank holds it.
struct LocalTensor {
  std::string name;
  ShardSpec spec;
  Floats values;
};

struct RankOutcome {
  ClassifierOutcome sums;  // without tensors
  std::vector<LocalTensor> gradients, parameters;
};

RankOutcome run_rank(const ClassifierCase& what, TpRank& rank) {
  Stages stages = stages_of(what, rank);
  RankOutcome out;
  for (index_t i = 0; i < what.num_steps; ++i) {
    const index_t step = ClassifierCase::first_step + i;
    const ClassifierBatch batch = batch_of(what, step);
    LossSums sums;
    for (index_t m = 0; m < what.num_microbatches; ++m) {
      const Pass pass{.step = step,
                      .first_sample = m * what.num_samples,
                      .num_samples = what.num_samples,
                      .first_of_lane = m == 0};
      const bool is_last = i + 1 == what.num_steps && m + 1 == what.num_microbatches;
      sums += run_microbatch(stages, rank, microbatch_of(rank.context, what, batch, m), pass,
                             [&](const Parameter& p, index_t shard) {
                               if (is_last && shard == p.spec.owned().begin)
                                 out.sums.ready.push_back(p.name);
                             });
    }
    out.sums.losses.push_back(sums.loss);
    out.sums.correct.push_back(sums.correct);
    for (const auto& stage : stages) {
      rank.fold_token_blocks(stage->parameters);
      for (const auto& p : stage->parameters.all()) check_pads(*p);
      stage->optimizer->update(rank.context, stage->parameters,
                               {.step = i, .learning_rate = what.learning_rate});
    }
  }
  for (const auto& stage : stages) {
    for (const auto& p : stage->parameters.all()) {
      const index_t n = p->spec.local_elements();
      out.gradients.push_back({p->name, p->spec, Floats(p->gradient, p->gradient + n)});
      out.parameters.push_back({p->name, p->spec, Floats(p->value, p->value + n)});
    }
  }
  return out;
}

// Adds a rank's parts to the whole; copies must be equal.
void merge(const std::vector<LocalTensor>& parts, std::map<std::string, Floats>& whole) {
  for (const LocalTensor& part : parts) {
    Floats& global = whole[part.name];
    const bool is_new = global.empty();
    if (is_new) global.resize(static_cast<std::size_t>(part.spec.global().num_elements()));
    Floats merged = global;
    gather(part.spec, part.values.data(), merged);
    if (!is_new && part.spec.is_replicated() && bit_difference(merged, global) != "") {
      throw std::runtime_error(part.name + ": copies differ");
    }
    global = std::move(merged);
  }
}

}  // namespace

double ClassifierBatch::sum_of_weights() const {
  double sum = 0.0;
  for (const float weight : weights) sum += static_cast<double>(weight);
  return sum;
}

namespace {

std::vector<std::int32_t> random_ids(index_t n, std::uint64_t seed, index_t vocabulary) {
  std::vector<std::int32_t> ids;
  for (const float value :
       random_floats(static_cast<std::size_t>(n), seed, 0.0f, static_cast<float>(vocabulary))) {
    ids.push_back(static_cast<std::int32_t>(value));
  }
  return ids;
}

// Token ids, and where there are lengths, those behind them from another seed.
void add_tokens(const ClassifierCase& what, std::uint64_t seed, ClassifierBatch& batch) {
  const index_t n = what.batch_samples() * what.inputs;
  batch.tokens = random_ids(n, seed, what.vocabulary);
  if (!what.has_lengths) return;
  const auto padding = random_ids(n, seed + 1000 + what.padding_seed, what.vocabulary);
  for (index_t i = 0; i < what.batch_samples(); ++i) {
    const index_t length = 1 + (5 * i + 2) % what.most_tokens();
    batch.lengths.push_back(static_cast<std::int32_t>(length));
    for (index_t t = i * what.inputs + length; t < (i + 1) * what.inputs; ++t)
      batch.tokens[static_cast<std::size_t>(t)] = padding[static_cast<std::size_t>(t)];
  }
}

}  // namespace

ClassifierBatch batch_of(const ClassifierCase& what, index_t step) {
  const std::uint64_t seed = hash64("x") + static_cast<std::uint64_t>(step);
  ClassifierBatch batch;
  if (what.vocabulary > 0) {
    add_tokens(what, seed, batch);
  } else {
    const auto size = static_cast<std::size_t>(what.batch_samples() * what.inputs);
    batch.x = what.hostile ? hostile_floats(size, seed) : random_floats(size, seed, -0.4f, 0.4f);
  }
  const index_t label_rows = what.batch_samples() * what.label_rows_per_sample();
  for (index_t i = 0; i < label_rows; ++i) {
    const index_t label = i * 3 % what.label_values();
    batch.labels.push_back(static_cast<std::int32_t>(label));
    batch.weights.push_back(what.class_weights ? 0.5f + 0.25f * static_cast<float>(label % 4)
                                               : 1.0f);
  }
  if (what.pad_last_sample) {
    std::fill_n(batch.weights.end() - what.label_rows_per_sample(), what.label_rows_per_sample(),
                0.0f);
  }
  return batch;
}

Floats initial_of(const std::string& parameter, index_t num_elements) {
  const bool is_gain = parameter.ends_with(".gain");
  return random_floats(static_cast<std::size_t>(num_elements), hash64(parameter),
                       is_gain ? 0.5f : -0.4f, is_gain ? 1.5f : 0.4f);
}

oracle::NamedMatrices initial_of(oracle::NamedMatrices zeros) {
  for (auto& [name, p] : zeros) {
    const Floats values = initial_of(name, static_cast<index_t>(p.size()));
    p.values.assign(values.begin(), values.end());
  }
  return zeros;
}

ClassifierOutcome run_classifier(const ClassifierCase& what, const RankGroup& group) {
  ClassifierOutcome result;
  std::mutex mutex;
  run_group(group, [&](TpRank& rank) {
    RankOutcome mine = run_rank(what, rank);
    const std::lock_guard lock(mutex);
    if (result.losses.empty()) {
      result = std::move(mine.sums);
    } else if (bit_difference(mine.sums.losses, result.losses) != "" ||
               mine.sums.correct != result.correct) {
      throw std::runtime_error("losses of ranks differ");
    }
    merge(mine.gradients, result.gradients);
    merge(mine.parameters, result.parameters);
  });
  return result;
}

std::string difference(const ClassifierOutcome& got, const ClassifierOutcome& expected) {
  std::string all = bit_difference(got.losses, expected.losses);
  if (got.correct != expected.correct) all += "correct samples; ";
  if (got.gradients.size() != expected.gradients.size()) all += "number of parameters; ";
  for (const auto& [name, gradient] : expected.gradients) {
    const std::string fault = bit_difference(got.gradients.at(name), gradient);
    if (!fault.empty()) all += "d " + name + ": " + fault + "; ";
  }
  for (const auto& [name, value] : expected.parameters) {
    const std::string fault = bit_difference(got.parameters.at(name), value);
    if (!fault.empty()) all += name + ": " + fault + "; ";
  }
  return all;
}

void check_all_layouts(const ClassifierCase& what) {
  for (const index_t shards : tested_shards()) {
    const ClassifierOutcome base = run_classifier(what, {.shards = shards});
    for (int tp = 1; tp <= static_cast<int>(shards); ++tp) {
      for (const bool sequence_parallel : {false, true}) {
        INFO("S = " << shards << ", tp = " << tp << ", " << what.num_samples << " samples, hostile "
                    << what.hostile << (sequence_parallel ? ", sequence parallel" : ""));
        const RankGroup group{.shards = shards, .tp = tp, .sequence_parallel = sequence_parallel};
        REQUIRE(difference(run_classifier(what, group), base) == "");
      }
    }
    for (const int threads : several_threads()) {
      INFO("S = " << shards << ", threads = " << threads);
      REQUIRE(difference(run_classifier(what, {.shards = shards, .threads = threads}), base) == "");
    }
  }
}

}  // namespace weft::testing
