#include "parallel/plan/plan_keys.hpp"

#include <limits>

namespace weft {

namespace {

// A reference to a member, by the path that leads to it: field_at<&Plan::model,
// &ModelPlan::layers>.
template <auto... Members>
auto& field_at(Plan& plan) {
  return (plan.*....*Members);
}

// Bounds that only keep products of sizes inside 64 bits; a legal plan is far below them.
constexpr index_t count_limit = index_t{1} << 30;
constexpr index_t micro_limit = index_t{1} << 20;
constexpr index_t hidden_limit = index_t{1} << 16;

// A seed shares its second word with the stream's number (core/random.hpp).
constexpr index_t seed_limit = (index_t{1} << 56) - 1;

constexpr IntegerRange seeds{0, seed_limit};
constexpr IntegerRange counts{1, count_limit};
// A piece of the input layer holds one feature at least; lanes and ranks stay countable.
constexpr IntegerRange pieces{1, 3072};
constexpr IntegerRange lanes{1, 4096};

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr NumberRange positive{0, infinity, true, true};
constexpr NumberRange not_negative{0, infinity, false, true};
constexpr NumberRange below_one{0, 1, false, true};
constexpr NumberRange fraction{0, 1};

using Keys = std::vector<PlanKey>;

void add_task(Keys& keys) {
  keys.push_back({.name = "task.dataset",
                  .field = &field_at<&Plan::task, &TaskPlan::dataset>,
                  .legal = Choices{{"cifar10"}, {"ag_news", "bank", "text"}}});
  keys.push_back({.name = "task.path",
                  .field = &field_at<&Plan::task, &TaskPlan::path>,
                  .scope = KeyScope::label});
  keys.push_back({.name = "task.split.train",
                  .field = &field_at<&Plan::task, &TaskPlan::train>,
                  .legal = counts,
                  .example = "45000"});
  keys.push_back({.name = "task.split.validation",
                  .field = &field_at<&Plan::task, &TaskPlan::validation>,
                  .legal = counts,
                  .example = "5000"});
  keys.push_back({.name = "task.split.seed",
                  .field = &field_at<&Plan::task, &TaskPlan::split_seed>,
                  .legal = seeds,
                  .example = "7"});
  keys.push_back({.name = "task.augment",
                  .field = &field_at<&Plan::task, &TaskPlan::augment>,
                  .example = "true"});
}

void add_model(Keys& keys) {
  keys.push_back({.name = "model.kind",
                  .field = &field_at<&Plan::model, &ModelPlan::kind>,
                  .legal = Choices{{"mlp"}, {"vit", "text_encoder", "gpt", "resnet"}}});
  keys.push_back({.name = "model.layers",
                  .field = &field_at<&Plan::model, &ModelPlan::layers>,
                  .legal = IntegerRange{1, 1024},
                  .example = "2",
                  .required = true});
  keys.push_back({.name = "model.hidden",
                  .field = &field_at<&Plan::model, &ModelPlan::hidden>,
                  .legal = IntegerRange{1, hidden_limit},
                  .example = "192",
                  .required = true});
  keys.push_back({.name = "model.mlp_ratio",
                  .field = &field_at<&Plan::model, &ModelPlan::mlp_ratio>,
                  .legal = IntegerRange{1, 64},
                  .example = "4"});
  keys.push_back({.name = "model.dropout",
                  .field = &field_at<&Plan::model, &ModelPlan::dropout>,
                  .legal = below_one,
                  .example = "0.1"});
}

void add_batch_and_numerics(Keys& keys) {
  keys.push_back({.name = "batch.global",
                  .field = &field_at<&Plan::batch, &BatchPlan::global>,
                  .legal = counts,
                  .example = "128",
                  .required = true});
  keys.push_back({.name = "batch.micro",
                  .field = &field_at<&Plan::batch, &BatchPlan::micro>,
                  .legal = IntegerRange{1, micro_limit},
                  .example = "16",
                  .required = true});
  keys.push_back({.name = "batch.last",
                  .field = &field_at<&Plan::batch, &BatchPlan::last>,
                  .legal = Choices{{"drop", "pad"}}});
  keys.push_back({.name = "numerics.mode",
                  .field = &field_at<&Plan::numerics, &NumericsPlan::mode>,
                  .legal = Choices{{"exact", "fast"}}});
  keys.push_back({.name = "numerics.shards",
                  .field = &field_at<&Plan::numerics, &NumericsPlan::shards>,
                  .legal = pieces,
                  .example = "4"});
  keys.push_back({.name = "numerics.lanes",
                  .field = &field_at<&Plan::numerics, &NumericsPlan::lanes>,
                  .legal = lanes,
                  .example = "4"});
  keys.push_back({.name = "numerics.dtype",
                  .field = &field_at<&Plan::numerics, &NumericsPlan::dtype>,
                  .legal = Choices{{"f32"}, {"bf16", "f16"}}});
  keys.push_back({.name = "numerics.seed",
                  .field = &field_at<&Plan::numerics, &NumericsPlan::seed>,
                  .legal = seeds,
                  .example = "1"});
}

void add_optimizer(Keys& keys) {
  const auto add = [&](const char* name, PlanField field, Legal legal, const char* example) {
    keys.push_back({.name = name, .field = field, .legal = std::move(legal), .example = example});
  };
  const auto used_where = [&](const char* key, const char* value) {
    keys.back().user_key = key;
    keys.back().user_value = value;
  };
  add("optimizer.kind", &field_at<&Plan::optimizer, &OptimizerPlan::kind>,
      Choices{{"sgd", "adamw"}, {"lamb"}}, "\"adamw\"");
  add("optimizer.lr", &field_at<&Plan::optimizer, &OptimizerPlan::lr>, positive, "1e-3");
  keys.back().required = true;
  add("optimizer.weight_decay", &field_at<&Plan::optimizer, &OptimizerPlan::weight_decay>,
      not_negative, "0.05");
  add("optimizer.clip_norm", &field_at<&Plan::optimizer, &OptimizerPlan::clip_norm>, not_negative,
      "1.0");
  add("optimizer.momentum", &field_at<&Plan::optimizer, &OptimizerPlan::momentum>, below_one,
      "0.9");
  used_where("optimizer.kind", "sgd");
  add("optimizer.betas",
      NumberPair{&field_at<&Plan::optimizer, &OptimizerPlan::beta1>,
                 &field_at<&Plan::optimizer, &OptimizerPlan::beta2>},
      below_one, "[0.9, 0.999]");
  used_where("optimizer.kind", "adamw");
  add("optimizer.eps", &field_at<&Plan::optimizer, &OptimizerPlan::eps>, positive, "1e-8");
  used_where("optimizer.kind", "adamw");

  constexpr auto schedule = &OptimizerPlan::schedule;
  add("optimizer.schedule.kind", &field_at<&Plan::optimizer, schedule, &SchedulePlan::kind>,
      Choices{{"constant", "cosine"}}, "\"cosine\"");
  add("optimizer.schedule.warmup_steps",
      &field_at<&Plan::optimizer, schedule, &SchedulePlan::warmup_steps>,
      IntegerRange{0, count_limit}, "100");
  used_where("optimizer.schedule.kind", "cosine");
  add("optimizer.schedule.final_fraction",
      &field_at<&Plan::optimizer, schedule, &SchedulePlan::final_fraction>, fraction, "0.0");
  used_where("optimizer.schedule.kind", "cosine");
}

void add_run_and_layout(Keys& keys) {
  keys.push_back({.name = "run.steps",
                  .field = &field_at<&Plan::run, &RunPlan::steps>,
                  .legal = counts,
                  .example = "1000"});
  keys.push_back({.name = "run.epochs",
                  .field = &field_at<&Plan::run, &RunPlan::epochs>,
                  .legal = counts,
                  .example = "10"});
  keys.push_back({.name = "eval.every_epochs",
                  .field = &field_at<&Plan::eval, &EvalPlan::every_epochs>,
                  .legal = IntegerRange{0, count_limit},
                  .example = "1"});
  keys.push_back({.name = "layout.tp",
                  .field = &field_at<&Plan::layout, &LayoutPlan::tp>,
                  .legal = pieces,
                  .example = "1",
                  .scope = KeyScope::layout});
  keys.push_back({.name = "layout.dp",
                  .field = &field_at<&Plan::layout, &LayoutPlan::dp>,
                  .legal = lanes,
                  .example = "1",
                  .scope = KeyScope::layout});
  keys.push_back({.name = "layout.threads",
                  .field = &field_at<&Plan::layout, &LayoutPlan::threads>,
                  .legal = IntegerRange{1, 1024},
                  .example = "1",
                  .scope = KeyScope::layout});
  keys.push_back({.name = "layout.order",
                  .field = &field_at<&Plan::layout, &LayoutPlan::order>,
                  .legal = Choices{{"tp,dp", "dp,tp"}, {"tp,dp,pp"}},
                  .scope = KeyScope::layout});
  keys.push_back({.name = "comm.transport",
                  .field = &field_at<&Plan::comm, &CommPlan::transport>,
                  .legal = Choices{{"auto", "ucx", "mpi", "local"}, {"shm", "nccl"}},
                  .scope = KeyScope::layout});
}

Keys make_keys() {
  Keys keys;
  keys.push_back({.name = "name", .field = &field_at<&Plan::name>, .scope = KeyScope::label});
  add_task(keys);
  add_model(keys);
  add_batch_and_numerics(keys);
  add_optimizer(keys);
  add_run_and_layout(keys);
  return keys;
}

}  // namespace

const std::vector<PlanKey>& plan_keys() {
  static const Keys keys = make_keys();
  return keys;
}

const PlanKey* find_key(std::string_view name) {
  for (const PlanKey& key : plan_keys()) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

const std::vector<std::string>& later_keys() {
  static const std::vector<std::string> keys = {
      "task.target",   "model.heads",      "model.kv_heads",    "model.patch",
      "layout.pp",     "layout.zero",      "layout.schedule",   "layout.sequence_parallel",
      "layout.stages", "layout.recompute", "comm.bucket_bytes", "comm.timeout_s",
      "checkpoint"};
  return keys;
}

}  // namespace weft
