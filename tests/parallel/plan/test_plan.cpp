// validate(): every rule once with its message, several at once, and the property that following
// any advice repairs what it was given for.
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <random>

#include "parallel/plan/nearest.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;
using weft::testing::with_fix;

namespace {

using Spoil = std::function<void(Plan&)>;

std::string faults_of(const Spoil& spoil, std::optional<index_t> num_ranks = std::nullopt) {
  Plan plan = sample_plan();
  spoil(plan);
  std::string text;
  for (const PlanFault& fault : validate(plan, num_ranks)) {
    text += (text.empty() ? "" : "\n") + fault.key + ": " + fault.message;
  }
  return text;
}

}  // namespace

TEST_CASE("the sample plan is legal, alone and on its ranks") {
  CHECK(faults_of([](Plan&) {}) == "");
  CHECK(faults_of([](Plan&) {}, 1) == "");
}

TEST_CASE("arithmetic of steps") {
  Plan plan = sample_plan();
  CHECK(plan.microbatches_per_lane() == 2);
  CHECK(plan.steps_per_epoch() == 351);  // 45000 = 351 x 128 + 72
  plan.batch.last = LastBatch::pad;
  CHECK(plan.steps_per_epoch() == 352);
  CHECK(plan.num_steps() == 20);
  plan.run = {.steps = std::nullopt, .epochs = 3};
  CHECK(plan.num_steps() == 3 * 352);
  plan.task.train = 128;
  CHECK(plan.steps_per_epoch() == 1);
  plan.task.train = 1;
  CHECK(plan.steps_per_epoch() == 1);
}

TEST_CASE("ranks are laid out with the first axis of the order fastest") {
  Plan plan = sample_plan();
  plan.layout.tp = 2;
  plan.layout.dp = 3;
  CHECK(plan.world_rank(1, 0) == 1);
  CHECK(plan.world_rank(0, 1) == 2);
  plan.layout.order = "dp,tp";
  CHECK(plan.world_rank(1, 0) == 3);
  CHECK(plan.world_rank(0, 1) == 1);
}

TEST_CASE("values out of range") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  struct Case {
    Spoil spoil;
    const char* fault;
  };
  const std::vector<Case> cases = {
      {[](Plan& p) { p.model.kind = "vit"; },
       "model.kind: expected \"mlp\"; found \"vit\", which is not in this version; nearest legal: "
       "model.kind = \"mlp\""},
      {[](Plan& p) { p.model.layers = 0; },
       "model.layers: expected an integer from 1 to 1024; found 0; nearest legal: model.layers = "
       "1"},
      {[](Plan& p) { p.model.hidden = -3; },
       "model.hidden: expected an integer from 1 to 65536; found -3; nearest legal: model.hidden = "
       "1"},
      {[](Plan& p) { p.model.mlp_ratio = 1000; },
       "model.mlp_ratio: expected an integer from 1 to 64; found 1000; nearest legal: "
       "model.mlp_ratio = 64"},
      {[](Plan& p) { p.model.dropout = 1.0; },
       "model.dropout: expected a number in [0, 1), such as 0.1; found 1.0"},
      {[](Plan& p) { p.model.dropout = -0.5; },
       "model.dropout: expected a number in [0, 1); found -0.5; nearest legal: model.dropout = "
       "0.0"},
      {[=](Plan& p) { p.model.dropout = nan; },
       "model.dropout: expected a number in [0, 1), such as 0.1; found nan"},
      {[](Plan& p) { p.optimizer.lr = 0.0; },
       "optimizer.lr: expected a finite number greater than 0, such as 1e-3; found 0.0"},
      {[=](Plan& p) { p.optimizer.lr = infinity; },
       "optimizer.lr: expected a finite number greater than 0, such as 1e-3; found inf"},
      {[](Plan& p) { p.optimizer.clip_norm = -1; },
       "optimizer.clip_norm: expected a finite number of at least 0; found -1.0; nearest legal: "
       "optimizer.clip_norm = 0.0"},
      {[](Plan& p) { p.optimizer.beta2 = 1; },
       "optimizer.betas: expected [a, b], each a number in [0, 1), such as [0.9, 0.999]; found "
       "[0.9, 1.0]"},
      {[](Plan& p) { p.numerics.seed = std::uint64_t{1} << 56; },
       "numerics.seed: expected an integer from 0 to 72057594037927935; found 72057594037927936; "
       "nearest legal: numerics.seed = 72057594037927935"},
      {[](Plan& p) { p.numerics.dtype = "bf16"; },
       "numerics.dtype: expected \"f32\"; found \"bf16\", which is not in this version; nearest "
       "legal: numerics.dtype = \"f32\""},
      {[](Plan& p) { p.layout.threads = 0; },
       "layout.threads: expected an integer from 1 to 1024; found 0; nearest legal: layout.threads "
       "= 1"},
      {[](Plan& p) { p.layout.order = "tp"; },
       "layout.order: expected \"tp,dp\" or \"dp,tp\"; found \"tp\"; nearest legal: layout.order = "
       "\"tp,dp\""},
      {[](Plan& p) { p.task.validation = 0; },
       "task.split.validation: expected an integer from 1 to 1073741824; found 0; nearest legal: "
       "task.split.validation = 1"},
      {[](Plan& p) { p.run.steps = 0; },
       "run.steps: expected an integer from 1 to 1073741824; found 0; nearest legal: run.steps = "
       "1"},
      {[](Plan& p) { p.name = "a/b"; },
       "name: expected a name without /; found \"a/b\"; nearest legal: name = \"a-b\""},
  };
  for (const Case& c : cases) CHECK(faults_of(c.spoil) == c.fault);
}

TEST_CASE("keys that the chosen kind does not use are refused") {
  CHECK(faults_of([](Plan& p) { p.optimizer.momentum = 0.9; }) ==
        "optimizer.momentum: optimizer.kind = \"adamw\" does not use it; remove it, or set "
        "optimizer.kind = \"sgd\"");
  CHECK(faults_of([](Plan& p) {
          p.optimizer.kind = "sgd";
          p.optimizer.eps = 1e-6;
        }) ==
        "optimizer.eps: optimizer.kind = \"sgd\" does not use it; remove it, or set optimizer.kind "
        "= \"adamw\"");
  CHECK(faults_of([](Plan& p) { p.optimizer.schedule.warmup_steps = 5; }) ==
        "optimizer.schedule.warmup_steps: optimizer.schedule.kind = \"constant\" does not use it; "
        "remove it, or set optimizer.schedule.kind = \"cosine\"");
  CHECK(faults_of([](Plan& p) {
          p.optimizer.kind = "sgd";
          p.optimizer.momentum = 0.9;
          p.optimizer.schedule = {"cosine", 5, 0.1};
        }) == "");
}

TEST_CASE("the global batch is micro x microbatches x lanes") {
  CHECK(
      faults_of([](Plan& p) { p.batch.global = 100; }) ==
      "batch.global: expected micro 16 x lanes 4 x a whole number of microbatches per lane, a "
      "multiple of 64; found 100; nearest legal: batch.global = 128 or 64, or batch.micro = 25 or "
      "5");
  // 4 lanes do not divide 90, whatever the microbatch; 3 or 5 do.
  CHECK(
      faults_of([](Plan& p) {
        p.batch.global = 90;
        p.batch.micro = 6;
      }) ==
      "batch.global: expected micro 6 x lanes 4 x a whole number of microbatches per lane, a "
      "multiple of 24; found 90; nearest legal: batch.global = 96 or 72, or numerics.lanes = 3 or "
      "5");
}

TEST_CASE("an epoch has one step at least") {
  CHECK(faults_of([](Plan& p) { p.task.train = 100; }) ==
        "batch.global: expected at most the 100 samples of task.split.train, or no step is left "
        "after the drop; found 128; nearest legal: batch.global = 64, or batch.last = \"pad\"");
  CHECK(faults_of([](Plan& p) {
          p.task.train = 100;
          p.batch.last = LastBatch::pad;
        }) == "");
  CHECK(faults_of([](Plan& p) { p.task.train = 50; }) ==
        "batch.global: expected at most the 50 samples of task.split.train, or no step is left "
        "after the drop; found 128; nearest legal: batch.global = 48 with batch.micro = 12, or "
        "batch.last = \"pad\"");
}

TEST_CASE("the feed-forward width is a multiple of the shards") {
  CHECK(faults_of([](Plan& p) { p.numerics.shards = 5; }) ==
        "numerics.shards: expected a feed-forward width that is a multiple of the 5 "
        "numerics.shards; found hidden 48 x mlp_ratio 4 = 192; nearest legal: numerics.shards = 4 "
        "or 6, or model.hidden = 50 or 45");
}

TEST_CASE("tp and dp stay within shards and lanes") {
  CHECK(
      faults_of([](Plan& p) { p.layout.tp = 5; }) ==
      "layout.tp: expected at most one rank per shard: tp <= 4; found 5; nearest legal: layout.tp "
      "= 4, or numerics.shards = 6");
  CHECK(faults_of([](Plan& p) { p.layout.dp = 6; }) ==
        "layout.dp: expected at most one replica per lane: dp <= 4; found 6; nearest legal: "
        "layout.dp = 4, or numerics.lanes = 8");
  // With the number of ranks known, the advice keeps it.
  CHECK(
      faults_of([](Plan& p) { p.layout.tp = 8; }, 8) ==
      "layout.tp: expected at most one rank per shard: tp <= 4; found 8; nearest legal: layout.tp "
      "= 4 with layout.dp = 2, or layout.tp = 2 with layout.dp = 4, or numerics.shards = 8");
}

TEST_CASE("ranks that were started are the layout's") {
  const Spoil eight = [](Plan& p) {
    p.layout.tp = 2;
    p.layout.dp = 4;
  };
  CHECK(faults_of(eight, 8) == "");
  CHECK(faults_of(eight, 4) ==
        "layout: 4 ranks were started, the layout needs tp 2 x dp 4 = 8: start 8, or for 4: "
        "layout.tp = 1 with layout.dp = 4, or layout.tp = 2 with layout.dp = 2, or layout.tp = 4 "
        "with layout.dp = 1");
  CHECK(faults_of(eight, 16) ==
        "layout: 16 ranks were started, the layout needs tp 2 x dp 4 = 8: start 8, or for 16: "
        "layout.tp = 4 with layout.dp = 4");
  CHECK(
      faults_of([](Plan&) {}, 5) ==
      "layout: 5 ranks were started, the layout needs tp 1 x dp 1 = 1: start 1, or choose another "
      "number, since no layout of this plan has 5 (tp at most 4 shards, dp at most 4 lanes); "
      "nearest that has one: 4 or 6");
  CHECK(faults_of([](Plan&) {}, 1000).find("nearest that has one: 16") != std::string::npos);
  CHECK(faults_of(eight, 1).starts_with("layout: 1 rank was started"));
}

TEST_CASE("exactly one of steps and epochs") {
  CHECK(faults_of([](Plan& p) { p.run.epochs = 1; }) ==
        "run.steps: expected either run.steps or run.epochs; found both: remove one");
  CHECK(faults_of([](Plan& p) { p.run.steps.reset(); }) ==
        "run.steps: expected either run.steps or run.epochs; found neither: set one, such as "
        "run.epochs = 10");
}

TEST_CASE("fast mode cuts by ranks, not by shards and lanes") {
  const auto fast = [](index_t tp, index_t dp) {
    return [=](Plan& p) {
      p.numerics.mode = NumericsMode::fast;
      p.layout.tp = tp;
      p.layout.dp = dp;
    };
  };
  CHECK(faults_of(fast(8, 8)) == "");  // beyond shards and lanes
  CHECK(
      faults_of(fast(5, 1)) ==
      "layout.tp: expected a feed-forward width that is a multiple of the 5 tp ranks of fast mode; "
      "found hidden 48 x mlp_ratio 4 = 192; nearest legal: layout.tp = 4 or 6, or model.hidden = "
      "50 or 45");
  CHECK(
      faults_of(fast(1, 3)) ==
      "batch.global: expected micro 16 x lanes 3 x a whole number of microbatches per lane, a "
      "multiple of 48; found 128; nearest legal: batch.global = 144 or 96, or layout.dp = 2 or 4");
}

TEST_CASE("all faults at once, and none that only follows from another") {
  const std::string faults = faults_of([](Plan& p) {
    p.model.layers = 0;
    p.batch.micro = 0;  // so the rule of the global batch cannot be asked
    p.numerics.shards = 7;
    p.layout.dp = 9;
    p.run.steps.reset();
  });
  CHECK(std::count(faults.begin(), faults.end(), '\n') == 4);
  for (const char* key :
       {"model.layers: ", "batch.micro: ", "numerics.shards: ", "layout.dp: ", "run.steps: "}) {
    CHECK(faults.find(key) != std::string::npos);
  }
}

TEST_CASE("following the advice repairs the plan") {
  std::mt19937 generator(20240501);
  const auto pick = [&](std::initializer_list<index_t> values) {
    return *(values.begin() + static_cast<std::ptrdiff_t>(generator() % values.size()));
  };
  for (int trial = 0; trial < 3000; ++trial) {
    Plan plan = sample_plan();
    plan.numerics.mode = pick({0, 0, 1}) == 1 ? NumericsMode::fast : NumericsMode::exact;
    plan.model.hidden = pick({0, 1, 5, 48, 50, 65536, 70000});
    plan.model.mlp_ratio = pick({1, 3, 4, 64});
    plan.batch.global = pick({1, 7, 96, 128, 1000, 45000, 45001, 2000000000});
    plan.batch.micro = pick({-1, 1, 3, 16, 1000, 1 << 20});
    plan.batch.last = pick({0, 1}) == 1 ? LastBatch::pad : LastBatch::drop;
    plan.task.train = pick({30, 1000, 45000});
    plan.numerics.shards = pick({1, 4, 5, 12, 3072, 4000});
    plan.numerics.lanes = pick({1, 4, 7, 12, 4096});
    plan.layout.tp = pick({0, 1, 2, 3, 8, 24});
    plan.layout.dp = pick({1, 2, 5, 8, 24});
    std::optional<index_t> num_ranks;
    if (pick({0, 1}) == 1) num_ranks = pick({1, 2, 6, 8, 16, 17});

    const std::vector<PlanFault> before = validate(plan, num_ranks);
    // One step: each advice on a rule over several keys removes that fault and adds none. (Where a
    // key is broken by itself, its rules could not be asked yet.)
    const bool all_rules_asked =
        std::none_of(before.begin(), before.end(), [](auto& f) { return f.involved.empty(); });
    for (const PlanFault& fault : before) {
      for (const PlanFix& fix : fault.fixes) {
        const std::vector<PlanFault> after = validate(with_fix(plan, fix), num_ranks);
        INFO(fault.key << ": " << fault.message);
        if (all_rules_asked) CHECK(after.size() < before.size());
        for (const PlanFault& other : after) CHECK(other.message != fault.message);
      }
    }
  }
}

TEST_CASE("edit distance") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("globl", "global") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("form", "from") == 1);
}

TEST_CASE("the nearest name looks at whole names and at last parts") {
  const std::vector<std::string> names = {"name", "batch.global", "optimizer.lr"};
  CHECK(nearest_name("batch.globl", names) == 1);
  CHECK(nearest_name("lr", names) == 2);
  CHECK(nearest_name("training.global", names) == 1);
}

TEST_CASE("nearest legal values") {
  const auto even = [](index_t i) { return i % 2 == 0; };
  CHECK(nearest_legal(7, 1, 9, 1, even) == std::vector<index_t>{6, 8});
  CHECK(nearest_legal(100, 1, 9, 1, even) == std::vector<index_t>{8});
  CHECK(nearest_legal(-5, 1, 9, 1, even) == std::vector<index_t>{2});
  CHECK(nearest_legal(5, 3, 9, 4, even) == std::vector<index_t>{4, 8});
  CHECK(nearest_legal(5, 1, 9, 1, [](index_t) { return false; }).empty());
}
