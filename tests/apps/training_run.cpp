#include "tests/apps/training_run.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <mutex>
#include <sstream>
#include <stdexcept>

#include "io/synthetic_cifar10.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/plan/plan_keys.hpp"
#include "tests/apps/token_samples.hpp"
#include "tests/core/shard_values.hpp"

namespace weft::testing {

namespace {

void expect(bool condition, const std::string& message) {
  if (!condition) throw std::runtime_error(message);
}

// Whole tensors, as ranks add what they hold: copies must be equal, and nothing may be missing.
class WholeTensors {
 public:
  void add(const ParameterSet& parameters) {
    for (const auto& p : parameters.all()) add(*p);
  }

  NamedFloats take() {
    for (const auto& [name, is_known] : is_known_) {
      expect(std::find(is_known.begin(), is_known.end(), false) == is_known.end(),
             name + ": no rank holds all of it");
    }
    return std::move(values_);
  }

 private:
  void add(const Parameter& p) {
    Floats& whole = values_[p.name];
    std::vector<bool>& is_known = is_known_[p.name];
    whole.resize(static_cast<std::size_t>(p.spec.global().num_elements()));
    is_known.resize(whole.size());
    for_each_held(p.spec, [&](index_t global, index_t local) {
      const auto at = static_cast<std::size_t>(global);
      expect(!is_known[at] || bit_difference(&whole[at], p.value + local, 1).empty(),
             p.name + ": copies differ");
      whole[at] = p.value[local];
      is_known[at] = true;
    });
  }

  NamedFloats values_;
  std::map<std::string, std::vector<bool>> is_known_;
};

RankFigures figures_of(Trainer& trainer) {
  Mesh& mesh = trainer.mesh();
  const Arena& arena = trainer.context().arena;
  RankFigures figures{.tp = mesh.rank("tp"),
                      .dp = mesh.rank("dp"),
                      .pp = mesh.rank("pp"),
                      .held_elements = trainer.parameters().held_elements()};
  for (std::size_t i = 0; i < num_memory_kinds; ++i) {
    figures.bytes[i] = arena.in_use(static_cast<MemoryKind>(i));
    figures.peaks[i] = arena.peak_of(static_cast<MemoryKind>(i));
  }
  return figures;
}

bool equal(const StepResult& a, const StepResult& b) {
  return bit_difference<double>({a.loss, a.accuracy, a.learning_rate, a.gradient_norm},
                                {b.loss, b.accuracy, b.learning_rate, b.gradient_norm})
             .empty() &&
         a.step == b.step && a.epoch == b.epoch && a.num_real == b.num_real;
}

}  // namespace

SmallData::SmallData() {
  make_synthetic_cifar10(folder_.path(), {.rows_per_file = 40, .seed = 3});
  training_ = open_training_data(small_plan(4).task, folder_.path());
}

const SmallData& small_data() {
  static const SmallData small;
  return small;
}

namespace {

constexpr index_t text_tokens = 6, news_tokens = 7, news_words = 29;
const std::vector<index_t> news_buckets = {3, 5, news_tokens};

TrainingData small_tokens(const TokenSamples::Options& options) {
  Split split = make_split(200, 150, 34, 3);
  split.test = all_of({200, 240});
  return {std::make_shared<TokenSamples>(options), std::move(split)};
}

}  // namespace

const TrainingData& small_text() {
  static const TrainingData small =
      small_tokens({.num_samples = 240,
                    .form = {.tokens = text_tokens, .labels = text_tokens},
                    .vocabulary = 256});
  return small;
}

const TrainingData& small_news() {
  static const TrainingData small =
      small_tokens({.num_samples = 240,
                    .form = {.tokens = news_tokens, .has_lengths = true},
                    .vocabulary = news_words,
                    .num_classes = 4});
  return small;
}

const TrainingData& small_bucketed_news() {
  static const TrainingData small = [] {
    TrainingData data = small_news();
    data.buckets = make_length_buckets(*data.samples, data.split.train, news_buckets);
    return data;
  }();
  return small;
}

const TrainingData& data_of(const Plan& plan) {
  if (!plan.task.length_buckets.empty()) return small_bucketed_news();
  if (plan.is_gpt()) return small_text();
  return plan.is_text_encoder() ? small_news() : small_data().training();
}

Plan on_layout(Plan plan, const SmallLayout& layout) {
  plan.layout.tp = layout.tp;
  plan.layout.dp = layout.dp;
  plan.layout.pp = layout.pp;
  plan.layout.zero = layout.zero;
  plan.layout.sequence_parallel = layout.sequence_parallel;
  plan.layout.schedule = layout.schedule;
  return plan;
}

Plan small_plan(index_t shards) {
  Plan plan;
  plan.name = "small";
  plan.task.train = 150;
  plan.task.validation = 34;
  plan.model.layers = 2;
  plan.model.hidden = 48;
  plan.batch.micro = shards == 12 ? 2 : 4;
  plan.batch.global = plan.batch.micro * shards;
  plan.batch.last = LastBatch::pad;
  plan.numerics.shards = shards;
  plan.numerics.lanes = shards;
  plan.optimizer.lr = 1e-3;
  plan.optimizer.weight_decay = 0.1;
  plan.optimizer.clip_norm = 1.0;
  plan.run.steps = 20;
  return plan;
}

namespace {

Plan small_transformer(index_t shards) {
  Plan plan = small_plan(shards);
  plan.model.heads = 12;
  plan.model.mlp_ratio = 2;
  return plan;
}

}  // namespace

Plan small_vit(index_t shards) {
  Plan plan = small_transformer(shards);
  plan.model.kind = "vit";
  plan.model.patch = 16;
  return plan;
}

Plan small_gpt(index_t shards) {
  Plan plan = small_transformer(shards);
  plan.model.kind = "gpt";
  plan.task.dataset = "text";
  plan.task.tokens = text_tokens;
  plan.task.test = 40;
  return plan;
}

Plan small_text_encoder(index_t shards) {
  Plan plan = small_transformer(shards);
  plan.model.kind = "text_encoder";
  plan.task.dataset = "ag_news";
  plan.task.tokens = news_tokens;
  plan.task.vocabulary = news_words;
  return plan;
}

Plan small_bucketed_encoder(index_t shards) {
  Plan plan = small_text_encoder(shards);
  plan.task.length_buckets = news_buckets;
  return plan;
}

void on_ranks(const Plan& plan, const TrainingData& data,
              const std::function<void(Trainer&)>& body) {
  const auto faults = validate(plan, plan.num_ranks());
  expect(faults.empty(), faults.empty() ? "" : faults[0].key + ": " + faults[0].message);
  const auto run = [&](Transport& transport) {
    Trainer trainer(plan, data, transport);
    body(trainer);
  };
  if (plan.num_ranks() > 1) {
    run_ranks(static_cast<int>(plan.num_ranks()), run);
  } else {
    const LocalWorld world(1);
    const auto transport = world.make_transport(0);
    run(*transport);
  }
}

TrainingRun train(const Plan& plan, const TrainingData& data, const RunOptions& options) {
  TrainingRun all;
  all.ranks.resize(static_cast<std::size_t>(plan.num_ranks()));
  std::mutex mutex;
  bool is_first = true;
  WholeTensors initial, final;
  on_ranks(plan, data, [&](Trainer& trainer) {
    if (options.before) options.before(trainer);
    {
      const std::lock_guard lock(mutex);
      initial.add(trainer.parameters());
    }
    std::vector<StepResult> steps;
    for (index_t i = 0; i < options.num_steps; ++i) {
      if (options.before_step) options.before_step(trainer);
      steps.push_back(trainer.step());
    }
    const Hash128 loss_hash = trainer.loss_hash();
    const Hash128 state_hash = trainer.state_hash();
    const RankFigures figures = figures_of(trainer);
    const Evaluation evaluation = options.evaluate ? trainer.evaluate(options.split) : Evaluation{};

    const std::lock_guard lock(mutex);
    final.add(trainer.parameters());
    all.ranks[static_cast<std::size_t>(trainer.mesh().world_rank())] = figures;
    if (is_first) {
      all.steps = steps;
      all.loss_hash = loss_hash;
      all.state_hash = state_hash;
      all.evaluation = evaluation;
      is_first = false;
    }
    for (std::size_t i = 0; i < steps.size(); ++i) {
      expect(equal(steps[i], all.steps[i]), "ranks report other steps");
    }
    expect(loss_hash == all.loss_hash && state_hash == all.state_hash, "hashes of ranks differ");
    expect(bit_difference<double>({evaluation.loss}, {all.evaluation.loss}).empty() &&
               evaluation.confusion == all.evaluation.confusion,
           "ranks report other evaluations");
  });
  all.initial = initial.take();
  all.final = final.take();
  return all;
}

std::string text_of(const Plan& plan) {
  const LayoutPlan& layout = plan.layout;
  std::ostringstream text;
  text << plan.model.kind << ", S " << plan.numerics.shards << ", R " << plan.numerics.lanes
       << ", tp " << layout.tp << " x dp " << layout.dp << " x pp " << layout.pp << ", ZeRO "
       << layout.zero << (layout.sequence_parallel ? ", sequence parallel, " : ", ")
       << layout.schedule << ", stages " << list_text(layout.stages) << ", order " << layout.order
       << ", buckets of " << plan.comm.bucket_bytes << ", threads " << layout.threads;
  return text.str();
}

void check_equal(const TrainingRun& run, const TrainingRun& base) {
  CHECK(run.loss_hash == base.loss_hash);
  CHECK(run.state_hash == base.state_hash);
  CHECK(run.evaluation.samples == base.evaluation.samples);
  CHECK(bit_difference<double>({run.evaluation.loss}, {base.evaluation.loss}) == "");
  CHECK(run.evaluation.confusion == base.evaluation.confusion);
  // Hashes say that something differs; this says what.
  REQUIRE(run.steps.size() == base.steps.size());
  for (std::size_t i = 0; i < base.steps.size(); ++i) {
    const StepResult &a = run.steps[i], &b = base.steps[i];
    INFO("step " << i << ": loss, accuracy, rate, gradient norm");
    CHECK(bit_difference<double>({a.loss, a.accuracy, a.learning_rate, a.gradient_norm},
                                 {b.loss, b.accuracy, b.learning_rate, b.gradient_norm}) == "");
  }
  REQUIRE(run.final.size() == base.final.size());
  for (const auto& [name, values] : base.final) {
    INFO(name);
    CHECK(bit_difference(run.final.at(name), values) == "");
  }
}

}  // namespace weft::testing
