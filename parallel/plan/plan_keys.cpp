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
constexpr IntegerRange blocks{1, 1024};
constexpr IntegerRange kept_checkpoints{1, 1000};
constexpr IntegerRange tokens{1, index_t{1} << 16};
// The two that stand for none and for others, and a word.
constexpr IntegerRange vocabulary{3, index_t{1} << 24};

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr NumberRange positive{0, infinity, true, true};
constexpr NumberRange not_negative{0, infinity, false, true};
constexpr NumberRange below_one{0, 1, false, true};
constexpr NumberRange fraction{0, 1};
// Eleven days: longer waits are not meant.
constexpr NumberRange timeout{0, 1e6, true};

using Keys = std::vector<PlanKey>;

// A function that adds one row.
auto adder(Keys& keys, KeyScope scope) {
  return [&keys, scope](const char* name, PlanField field, Legal legal, const char* example) {
    keys.push_back({.name = name,
                    .field = field,
                    .legal = std::move(legal),
                    .example = example,
                    .scope = scope});
  };
}

void add_task(Keys& keys) {
  const auto add_result = adder(keys, KeyScope::result);
  const auto used_by = [&](const char* key, std::vector<std::string> values) {
    keys.back().user_key = key;
    keys.back().user_values = std::move(values);
  };
  const auto used_by_bank = [&] { used_by("task.dataset", {"bank"}); };
  add_result("task.dataset", &field_at<&Plan::task, &TaskPlan::dataset>,
             Choices{{"cifar10", "bank", "ag_news", "text"}}, "");
  keys.push_back({.name = "task.path",
                  .field = &field_at<&Plan::task, &TaskPlan::path>,
                  .scope = KeyScope::label});
  add_result("task.table", &field_at<&Plan::task, &TaskPlan::table>,
             Choices{{"bank-additional-full", "bank-full"}}, "\"bank-full\"");
  used_by_bank();
  add_result("task.allow_leak", &field_at<&Plan::task, &TaskPlan::allow_leak>, {}, "true");
  used_by_bank();
  add_result("task.split.kind", &field_at<&Plan::task, &TaskPlan::split_kind>,
             Choices{{"random", "time", "group"}}, "\"time\"");
  used_by_bank();
  add_result("task.split.by", &field_at<&Plan::task, &TaskPlan::split_by>, {}, "\"job\"");
  keys.back().required = true;
  used_by("task.split.kind", {"group"});
  add_result("task.split.train", &field_at<&Plan::task, &TaskPlan::train>, counts, "45000");
  add_result("task.split.validation", &field_at<&Plan::task, &TaskPlan::validation>, counts,
             "5000");
  add_result("task.split.test", &field_at<&Plan::task, &TaskPlan::test>,
             IntegerRange{0, count_limit}, "5000");
  keys.back().required = true;
  used_by("task.dataset", {"bank", "text"});
  add_result("task.split.seed", &field_at<&Plan::task, &TaskPlan::split_seed>, seeds, "7");
  add_result("task.augment", &field_at<&Plan::task, &TaskPlan::augment>, {}, "true");
  used_by("task.dataset", {"cifar10"});
  add_result("task.class_weights", &field_at<&Plan::task, &TaskPlan::class_weights>,
             Choices{{"none", "balanced"}}, "\"balanced\"");
  used_by_bank();
  add_result("task.rare_share", &field_at<&Plan::task, &TaskPlan::rare_share>, below_one, "0.3");
  used_by_bank();
  add_result("task.tokens", &field_at<&Plan::task, &TaskPlan::tokens>, tokens, "128");
  used_by("task.dataset", {"ag_news", "text"});
  add_result("task.vocabulary", &field_at<&Plan::task, &TaskPlan::vocabulary>, vocabulary, "20000");
  used_by("task.dataset", {"ag_news"});
  add_result("task.length_buckets",
             IntegerList{.values = &field_at<&Plan::task, &TaskPlan::length_buckets>,
                         .empty_word = "none"},
             tokens, "[32, 64, 128]");
  used_by("task.dataset", {"ag_news"});
  add_result("task.faulty_rows", &field_at<&Plan::task, &TaskPlan::faulty_rows>,
             Choices{{"refuse", "skip"}}, "\"skip\"");
  used_by("task.dataset", {"bank", "ag_news"});
  // No bit depends on it, as on a layout.
  const auto add = adder(keys, KeyScope::layout);
  constexpr auto target = &TaskPlan::target;
  const Choices metrics{{"none", "accuracy", "loss", "macro_f1", "roc_auc", "pr_auc"}};
  add("task.target.metric", &field_at<&Plan::task, target, &TargetPlan::metric>, metrics,
      "\"accuracy\"");
  add("task.target.split", &field_at<&Plan::task, target, &TargetPlan::split>,
      Choices{{"validation"}}, "");
  add("task.target.at_least", &field_at<&Plan::task, target, &TargetPlan::at_least>, fraction,
      "0.6");
  add("task.target.at_most", &field_at<&Plan::task, target, &TargetPlan::at_most>, not_negative,
      "1.2");
  constexpr auto accept = &TaskPlan::accept;
  add("task.accept.metric", &field_at<&Plan::task, accept, &TargetPlan::metric>, metrics,
      "\"accuracy\"");
  add("task.accept.split", &field_at<&Plan::task, accept, &TargetPlan::split>,
      Choices{{"validation", "test"}}, "\"test\"");
  add("task.accept.at_least", &field_at<&Plan::task, accept, &TargetPlan::at_least>, not_negative,
      "0.6");
  add("task.accept.at_most", &field_at<&Plan::task, accept, &TargetPlan::at_most>, not_negative,
      "0.8");
  const auto add_label = adder(keys, KeyScope::label);
  constexpr auto text = &TaskPlan::text;
  add_label("task.source", &field_at<&Plan::task, text, &TaskText::source>, {}, "");
  add_label("task.moment", &field_at<&Plan::task, text, &TaskText::moment>, {}, "");
  add_label("task.features", &field_at<&Plan::task, text, &TaskText::features>, {}, "");
  add_label("task.label", &field_at<&Plan::task, text, &TaskText::label>, {}, "");
}

void add_model(Keys& keys) {
  const auto add = adder(keys, KeyScope::result);
  const auto used_by = [&](std::vector<std::string> kinds) {
    keys.back().user_key = "model.kind";
    keys.back().user_values = std::move(kinds);
  };
  add("model.kind", &field_at<&Plan::model, &ModelPlan::kind>,
      Choices{{"mlp", "vit", "text_encoder", "gpt"}, {"resnet"}}, "");
  add("model.layers", &field_at<&Plan::model, &ModelPlan::layers>, blocks, "2");
  keys.back().required = true;
  add("model.hidden", &field_at<&Plan::model, &ModelPlan::hidden>, IntegerRange{1, hidden_limit},
      "192");
  keys.back().required = true;
  add("model.heads", &field_at<&Plan::model, &ModelPlan::heads>, IntegerRange{1, hidden_limit},
      "8");
  keys.back().required = true;
  used_by({"vit", "text_encoder", "gpt"});
  add("model.patch", &field_at<&Plan::model, &ModelPlan::patch>, IntegerRange{1, 32}, "4");
  used_by({"vit"});
  add("model.mlp_ratio", &field_at<&Plan::model, &ModelPlan::mlp_ratio>, IntegerRange{1, 64}, "4");
  add("model.dropout", &field_at<&Plan::model, &ModelPlan::dropout>, below_one, "0.1");
  add("model.tied", &field_at<&Plan::model, &ModelPlan::tied>, {}, "false");
  used_by({"gpt"});
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
  const auto add = adder(keys, KeyScope::result);
  const auto used_where = [&](const char* key, const char* value) {
    keys.back().user_key = key;
    keys.back().user_values = {value};
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

void add_run(Keys& keys) {
  keys.push_back({.name = "run.steps",
                  .field = &field_at<&Plan::run, &RunPlan::steps>,
                  .legal = counts,
                  .example = "1000"});
  keys.push_back({.name = "run.epochs",
                  .field = &field_at<&Plan::run, &RunPlan::epochs>,
                  .legal = counts,
                  .example = "10"});
  keys.push_back({.name = "run.time_limit",
                  .field = &field_at<&Plan::run, &RunPlan::time_limit>,
                  .example = "\"3h55m\"",
                  .scope = KeyScope::layout});
  keys.push_back({.name = "eval.every_epochs",
                  .field = &field_at<&Plan::eval, &EvalPlan::every_epochs>,
                  .legal = IntegerRange{0, count_limit},
                  .example = "1"});
}

void add_layout(Keys& keys) {
  const auto add = adder(keys, KeyScope::layout);
  add("layout.tp", &field_at<&Plan::layout, &LayoutPlan::tp>, pieces, "1");
  add("layout.dp", &field_at<&Plan::layout, &LayoutPlan::dp>, lanes, "1");
  add("layout.pp", &field_at<&Plan::layout, &LayoutPlan::pp>, blocks, "1");
  add("layout.zero", &field_at<&Plan::layout, &LayoutPlan::zero>, IntegerRange{0, 1, 3}, "1");
  add("layout.schedule", &field_at<&Plan::layout, &LayoutPlan::schedule>,
      Choices{{"1f1b", "gpipe"}, {"interleaved", "zero_bubble"}}, "");
  add("layout.sequence_parallel", &field_at<&Plan::layout, &LayoutPlan::sequence_parallel>, {},
      "true");
  add("layout.stages",
      IntegerList{.values = &field_at<&Plan::layout, &LayoutPlan::stages>,
                  .empty_word = even_word,
                  .flag_word = measured_word,
                  .flag = &field_at<&Plan::layout, &LayoutPlan::measures_stages>},
      blocks, "[3, 3]");
  add("layout.threads", &field_at<&Plan::layout, &LayoutPlan::threads>, IntegerRange{1, 1024}, "1");
  add("layout.order", &field_at<&Plan::layout, &LayoutPlan::order>,
      Choices{{"tp,dp,pp", "tp,pp,dp", "dp,tp,pp", "dp,pp,tp", "pp,tp,dp", "pp,dp,tp"}}, "");
  add("comm.transport", &field_at<&Plan::comm, &CommPlan::transport>,
      Choices{{"auto", "ucx", "mpi", "local"}, {"shm", "nccl"}}, "");
  add("comm.bucket_bytes", &field_at<&Plan::comm, &CommPlan::bucket_bytes>, counts, "4194304");
  add("comm.timeout_s", &field_at<&Plan::comm, &CommPlan::timeout_s>, timeout, "600.0");
}

void add_checkpoint(Keys& keys) {
  const auto add = adder(keys, KeyScope::layout);
  add("checkpoint.every_steps", &field_at<&Plan::checkpoint, &CheckpointPlan::every_steps>,
      IntegerRange{0, count_limit}, "200");
  add("checkpoint.every", &field_at<&Plan::checkpoint, &CheckpointPlan::every>, {}, "\"30m\"");
  add("checkpoint.overhead", &field_at<&Plan::checkpoint, &CheckpointPlan::overhead>, below_one,
      "0.02");
  add("checkpoint.keep", &field_at<&Plan::checkpoint, &CheckpointPlan::keep>, kept_checkpoints,
      "2");
  add("checkpoint.keep_every", &field_at<&Plan::checkpoint, &CheckpointPlan::keep_every>,
      IntegerRange{0, count_limit}, "1000");
  add("checkpoint.keep_best", &field_at<&Plan::checkpoint, &CheckpointPlan::keep_best>,
      IntegerRange{0, 1000}, "1");
  add("checkpoint.at_end", &field_at<&Plan::checkpoint, &CheckpointPlan::at_end>, {}, "true");
  add("checkpoint.read_back", &field_at<&Plan::checkpoint, &CheckpointPlan::read_back>, {}, "true");
  add("checkpoint.async", &field_at<&Plan::checkpoint, &CheckpointPlan::async>, {}, "true");
}

void add_integrity(Keys& keys) {
  const auto add = adder(keys, KeyScope::layout);
  add("integrity.replicas_every_steps",
      &field_at<&Plan::integrity, &IntegrityPlan::replicas_every_steps>,
      IntegerRange{0, count_limit}, "100");
  add("integrity.on_nonfinite", &field_at<&Plan::integrity, &IntegrityPlan::on_nonfinite>,
      Choices{{"stop", "skip"}}, "\"skip\"");
  add("integrity.max_skips", &field_at<&Plan::integrity, &IntegrityPlan::max_skips>, counts, "10");
  keys.back().user_key = "integrity.on_nonfinite";
  keys.back().user_values = {"skip"};
}

void add_document(Keys& keys) {
  const auto add = adder(keys, KeyScope::label);
  add("resources.nodes", &field_at<&Plan::resources, &ResourcesPlan::nodes>,
      IntegerRange{0, count_limit}, "2");
  add("resources.devices_per_node", &field_at<&Plan::resources, &ResourcesPlan::devices_per_node>,
      IntegerRange{0, count_limit}, "8");
  add("resources.device", &field_at<&Plan::resources, &ResourcesPlan::device>, {}, "");
  add("study.baseline", &field_at<&Plan::study, &StudyPlan::baseline>, {}, "\"tp=1 dp=1\"");
  add("study.candidates", &field_at<&Plan::study, &StudyPlan::candidates>, {}, "\"tp=1,2 dp=1,2\"");
}

Keys make_keys() {
  Keys keys;
  keys.push_back({.name = "name", .field = &field_at<&Plan::name>, .scope = KeyScope::label});
  add_task(keys);
  add_model(keys);
  add_batch_and_numerics(keys);
  add_optimizer(keys);
  add_run(keys);
  add_layout(keys);
  add_checkpoint(keys);
  add_integrity(keys);
  add_document(keys);
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
  static const std::vector<std::string> keys = {"model.kv_heads", "layout.recompute"};
  return keys;
}

}  // namespace weft
