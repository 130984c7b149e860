// Plans as text: every key out and in again with its bits, and the hash of a plan.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "io/plan_file.hpp"
#include "parallel/plan/plan_keys.hpp"

using namespace weft;

namespace {

const std::string small_plan =
    "model.layers = 2\nmodel.hidden = 48\nbatch.global = 128\nbatch.micro = 16\n"
    "optimizer.lr = 1e-3\nrun.steps = 20\n";

Plan read(const std::string& text) { return parse_plan(text, "plan.toml"); }

// A plan in which every key differs from its default.
Plan unusual_plan(bool adamw) {
  Plan plan;
  plan.name = "odd \"name\"\\ \x01 \xc3\xa9";
  plan.task.path = "C:\\data\t\"x\"";
  plan.task.train = 40001;
  plan.task.validation = 4999;
  plan.task.split_seed = (std::uint64_t{1} << 56) - 1;
  plan.task.augment = false;
  plan.task.target = adamw ? TargetPlan{.metric = "accuracy", .at_least = 0.1 + 0.2, .at_most = {}}
                           : TargetPlan{.metric = "loss", .at_least = {}, .at_most = 1.0 / 3};
  plan.task.accept = {.metric = "macro_f1", .split = "test", .at_least = 0.25, .at_most = 1.0 / 7};
  plan.task.text = {.source = "who\nmade it", .moment = "then", .features = "x", .label = "y"};
  plan.resources = {.nodes = 3, .devices_per_node = 5, .device = "a \\ b"};
  plan.study = {.baseline = "tp=1", .candidates = "tp=1,2 dp=[1]"};
  plan.model = {.kind = "mlp", .layers = 3, .hidden = 60, .mlp_ratio = 5, .dropout = 0.1};
  if (adamw) {
    plan.model.kind = "vit";
    plan.model.heads = 12;
    plan.model.patch = 8;
  }
  plan.batch = {.global = 180, .micro = 5, .last = LastBatch::pad};
  plan.numerics = {.mode = NumericsMode::fast,
                   .shards = 12,
                   .lanes = 6,
                   .dtype = "f32",
                   .seed = 123456789012345};
  plan.optimizer.kind = adamw ? "adamw" : "sgd";
  plan.optimizer.lr = 0.1 + 0.2;
  plan.optimizer.weight_decay = 1.0 / 3;
  plan.optimizer.clip_norm = 5e-324;
  if (adamw) {
    plan.optimizer.beta1 = 0.12345678901234567;
    plan.optimizer.beta2 = 1 - 1e-16;
    plan.optimizer.eps = std::numeric_limits<double>::max();
  } else {
    plan.optimizer.momentum = 1 - 1e-16;
  }
  plan.optimizer.schedule = {"cosine", 7, 1.0 / 7};
  plan.run.epochs = 11;
  plan.run.time_limit = {14099};
  plan.eval.every_epochs = 0;
  plan.layout = {.tp = 2,
                 .dp = 3,
                 .pp = 2,
                 .zero = 1,
                 .schedule = "gpipe",
                 .sequence_parallel = true,
                 .stages = {2, 1},
                 .threads = 4,
                 .order = "dp,pp,tp"};
  plan.comm = {.transport = "mpi", .bucket_bytes = 12345, .timeout_s = 1.0 / 3};
  plan.checkpoint = {.every_steps = 77,
                     .every = {5400},
                     .overhead = 0.03,
                     .keep = 5,
                     .keep_every = 770,
                     .keep_best = 2,
                     .at_end = false,
                     .read_back = false,
                     .async = true};
  plan.integrity = {.replicas_every_steps = 7, .on_nonfinite = "skip", .max_skips = 3};
  return plan;
}

}  // namespace

TEST_CASE("every key goes out and in again with its bits") {
  for (const bool adamw : {true, false}) {
    const Plan plan = unusual_plan(adamw);
    REQUIRE(validate(plan, std::nullopt).empty());
    const std::string text = to_toml(plan);
    INFO(text);
    CHECK(read(text) == plan);
    CHECK(parse_plan(text, "the checkpoint's plan") == plan);
    const Plan defaults;
    for (const PlanKey& key : plan_keys()) {
      if (!is_used(key, plan) || value_text(key, plan).empty()) continue;
      if (std::holds_alternative<Choices>(key.legal) &&
          std::get<Choices>(key.legal).now.size() == 1)
        continue;
      if (key.name == "task.dataset") continue;  // other sets have other keys, below
      const bool is_kind = key.name == (adamw ? "optimizer.kind" : "model.kind");
      if (!is_kind) CHECK(value_text(key, plan) != value_text(key, defaults));
      const std::string last = key.name.substr(key.name.find('.') + 1);
      CHECK(text.find("\n" + last + " = ") != std::string::npos);
    }
  }
  CHECK(read(to_toml(read(small_plan))) == read(small_plan));
}

TEST_CASE("plans of tables and texts go out and in again") {
  Plan bank = unusual_plan(false);
  bank.task.dataset = "bank";
  bank.task.augment = true;
  bank.task.table = "bank-full";
  bank.task.allow_leak = true;
  bank.task.split_kind = "group";
  bank.task.split_by = "job";
  bank.task.test = 77;
  bank.task.class_weights = "balanced";
  bank.task.rare_share = 1.0 / 3;
  Plan news = unusual_plan(true);
  news.task.dataset = "ag_news";
  news.task.augment = true;
  news.task.tokens = 31;
  news.task.vocabulary = 1001;
  news.task.length_buckets = {16, 31};
  news.model.kind = "text_encoder";
  news.model.patch = 4;
  Plan text = news;
  text.task.dataset = "text";
  text.task.vocabulary = 20000;
  text.task.length_buckets.clear();
  text.task.test = 5;
  text.model.kind = "gpt";
  text.model.tied = false;
  Plan measured = unusual_plan(true);
  measured.layout.stages.clear();
  measured.layout.measures_stages = true;
  for (const Plan& plan : {bank, news, text, measured}) {
    const std::string toml = to_toml(plan);
    INFO(toml);
    CHECK(validate(plan, std::nullopt).empty());
    CHECK(read(toml) == plan);
  }
  CHECK(to_toml(bank).find("split.by = \"job\"") != std::string::npos);
  CHECK(to_toml(news).find("augment") == std::string::npos);
}

TEST_CASE("numbers keep their bits") {
  std::mt19937_64 generator(7);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t bits = generator() & ~(std::uint64_t{1} << 63);
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    Plan plan = unusual_plan(true);
    plan.optimizer.lr = value;
    if (!validate(plan, std::nullopt).empty()) continue;
    const Plan again = read(to_toml(plan));
    CHECK(std::memcmp(&again.optimizer.lr, &value, sizeof value) == 0);
  }
  CHECK(number_text(-0.0) == "-0.0");
  CHECK(number_text(1) == "1.0");
}

TEST_CASE("fingerprints") {
  const Plan plan = read(small_plan);
  CHECK(plan_fingerprint(plan).size() == 32);
  Plan moved = plan;  // another layout of the same plan, elsewhere
  moved.layout = {.tp = 4,
                  .dp = 2,
                  .pp = 2,
                  .zero = 1,
                  .schedule = "gpipe",
                  .sequence_parallel = true,
                  .stages = {1, 1},
                  .threads = 2,
                  .order = "dp,tp,pp"};
  moved.comm = {.transport = "mpi", .bucket_bytes = 1, .timeout_s = 5};
  moved.checkpoint = {.every_steps = 3, .keep = 1, .at_end = false, .read_back = false};
  moved.task.target = {.metric = "accuracy", .at_least = 0.5, .at_most = {}};
  moved.name = "other";
  moved.task.path = "/elsewhere";
  moved.run.time_limit = {60};
  moved.integrity = {.replicas_every_steps = 0, .on_nonfinite = "skip", .max_skips = 1};
  CHECK(plan_fingerprint(plan) == plan_fingerprint(moved));
  CHECK(plan_fingerprint(plan, FingerprintOf::all) != plan_fingerprint(moved, FingerprintOf::all));

  // Every key counts.
  for (const bool adamw : {true, false}) {
    const Plan odd = unusual_plan(adamw);
    for (const PlanKey& key : plan_keys()) {
      Plan other = odd;
      const PlanField& field = key.field;
      if (auto* text = std::get_if<std::string& (*)(Plan&)>(&field))
        (*text)(other) += "x";
      else if (auto* flag = std::get_if<bool& (*)(Plan&)>(&field))
        (*flag)(other) ^= true;
      else if (auto* count = std::get_if<index_t& (*)(Plan&)>(&field))
        (*count)(other) += 1;
      else if (auto* maybe = std::get_if<std::optional<index_t>& (*)(Plan&)>(&field))
        (*maybe)(other) = 99;
      else if (auto* limit = std::get_if<std::optional<double>& (*)(Plan&)>(&field))
        (*limit)(other) = 0.5;
      else if (auto* seed = std::get_if<std::uint64_t& (*)(Plan&)>(&field))
        (*seed)(other) -= 1;
      else if (auto* number = std::get_if<double& (*)(Plan&)>(&field))
        (*number)(other) /= 2;
      else if (auto* pair = std::get_if<NumberPair>(&field))
        pair->second(other) /= 2;
      else if (auto* list = std::get_if<IntegerList>(&field))
        list->values(other).push_back(32);
      else if (auto* mode = std::get_if<NumericsMode& (*)(Plan&)>(&field))
        (*mode)(other) = NumericsMode::exact;
      else if (auto* time = std::get_if<TimeSpan& (*)(Plan&)>(&field))
        (*time)(other).seconds += 1;
      else if (auto* last = std::get_if<LastBatch& (*)(Plan&)>(&field))
        (*last)(other) = LastBatch::drop;
      INFO(key.name);
      CHECK((plan_fingerprint(odd, FingerprintOf::all) ==
             plan_fingerprint(other, FingerprintOf::all)) == !is_used(key, odd));
      const bool decides = key.scope == KeyScope::result && is_used(key, odd);
      CHECK((plan_fingerprint(odd) == plan_fingerprint(other)) == !decides);
    }
  }
}

namespace {

// "key: before > now", with ! where training changes, one a line.
std::string differences(const Plan& before, const Plan& now) {
  std::string text;
  for (const PlanDifference& d : plan_differences(before, now)) {
    text += d.key + ": " + d.before + " > " + d.now + (d.changes_training ? " !\n" : "\n");
  }
  return text;
}

}  // namespace

TEST_CASE("differences between two plans") {
  const Plan plan = read(small_plan);
  CHECK(differences(plan, plan) == "");
  Plan moved = plan;  // elsewhere, under another name, with other checkpoints
  moved.name = "other";
  moved.task.path = "/elsewhere";
  moved.layout.tp = 4;
  moved.comm.timeout_s = 5;
  moved.run.time_limit = {60};
  moved.checkpoint = {.every_steps = 5, .keep = 9, .at_end = false, .read_back = false};
  CHECK(differences(plan, moved) == "");
  // Written as text, as a checkpoint holds it, and with other bits of a number.
  CHECK(differences(read(to_toml(plan)), plan) == "");
  moved.optimizer.lr = std::nextafter(1e-3, 1.0);
  moved.batch.global = 256;
  CHECK(differences(plan, moved) ==
        "batch.global: 128 > 256 !\noptimizer.lr: 0.001 > 0.0010000000000000002 !\n");
  CHECK(differences(moved, plan) ==
        "batch.global: 256 > 128 !\noptimizer.lr: 0.0010000000000000002 > 0.001 !\n");
  // Keys that only one of them uses.
  Plan vit = plan;
  vit.model.kind = "vit";
  vit.model.heads = 4;
  CHECK(differences(plan, vit) ==
        "model.kind: \"mlp\" > \"vit\" !\nmodel.heads:  > 4 !\nmodel.patch:  > 4 !\n");
  CHECK(differences(vit, plan) ==
        "model.kind: \"vit\" > \"mlp\" !\nmodel.heads: 4 >  !\nmodel.patch: 4 >  !\n");
}

TEST_CASE("evaluation never changes training, the length only with the learning rate") {
  Plan plan = read(small_plan), other = plan;
  other.eval.every_epochs = 0;
  CHECK(differences(plan, other) == "eval.every_epochs: 1 > 0\n");
  other = plan;
  other.run.steps = 40;
  CHECK(differences(plan, other) == "run.steps: 20 > 40\n");
  other.run = {.steps = std::nullopt, .epochs = 2};
  CHECK(differences(plan, other) == "run.steps: 20 > \nrun.epochs:  > 2\n");

  plan.optimizer.schedule = other.optimizer.schedule = {"cosine", 5, 0.0};
  CHECK(differences(plan, other) == "run.steps: 20 >  !\nrun.epochs:  > 2 !\n");
  plan.run.steps = 702;  // 45000 / 128 = 351.6: two epochs, said otherwise
  CHECK(differences(plan, other) == "run.steps: 702 > \nrun.epochs:  > 2\n");
  plan.run.steps = 703;
  CHECK(differences(plan, other) == "run.steps: 703 >  !\nrun.epochs:  > 2 !\n");
  // A new schedule in a run of another length: both count.
  other.optimizer.schedule = {};
  const std::string both = differences(plan, other);
  CHECK(both.find("optimizer.schedule.kind: \"cosine\" > \"constant\" !\n") != std::string::npos);
  CHECK(both.find("run.steps: 703 >  !\n") != std::string::npos);
}

TEST_CASE("plans differ where their fingerprints do, key by key") {
  for (const bool adamw : {true, false}) {
    const Plan plan = unusual_plan(adamw);
    for (const PlanKey& key : plan_keys()) {
      Plan other = plan;
      if (const auto* count = std::get_if<index_t& (*)(Plan&)>(&key.field)) (*count)(other) += 1;
      if (const auto* number = std::get_if<double& (*)(Plan&)>(&key.field)) (*number)(other) /= 2;
      if (const auto* flag = std::get_if<bool& (*)(Plan&)>(&key.field)) (*flag)(other) ^= true;
      const bool same = plan_fingerprint(plan) == plan_fingerprint(other);
      const std::vector<PlanDifference> found = plan_differences(plan, other);
      INFO(key.name);
      CHECK(found.empty() == same);
      if (!same) CHECK((found.size() == 1 && found[0].key == key.name));
    }
  }
}
