// validate(): every rule with its message, and several at once.
#include <catch2/catch.hpp>
#include <functional>
#include <limits>

#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;
using weft::testing::sample_vit;

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

namespace {

struct Case {
  Spoil spoil;
  const char* fault;
};

const double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("values out of range") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<Case> cases = {
      {[](Plan& p) { p.model.kind = "resnet"; },
       "model.kind: expected \"mlp\", \"vit\", \"text_encoder\" or \"gpt\"; found \"resnet\", "
       "which "
       "is not in this version; nearest legal: model.kind = \"vit\""},
      {[](Plan& p) {
         p.model.kind = "gpt";
         p.model.heads = 8;
       },
       "model.kind: expected \"mlp\" or \"vit\" for task.dataset = \"cifar10\"; found \"gpt\"; "
       "nearest "
       "legal: model.kind = \"vit\""},
      {[](Plan& p) {
         p.task.dataset = "ag_news";
         p.task.augment = true;
       },
       "model.kind: expected \"text_encoder\" for task.dataset = \"ag_news\"; found \"mlp\""},
      {[](Plan& p) { p.task.vocabulary = 7; },
       "task.vocabulary: task.dataset = \"cifar10\" does not use it; remove it, or set "
       "task.dataset = "
       "\"ag_news\""},
      {[](Plan& p) { p.task.accept.metric = "accuracy"; },
       "task.accept.at_least: expected the least or the most accuracy that is accepted, or both; "
       "found neither; nearest legal: task.accept.at_least = 0.6"},
      {[](Plan& p) { p.task.accept.at_most = 0.5; },
       "task.accept.metric: expected a metric for the range that is to be reached; found \"none\" "
       "with a bound"},
      {[](Plan& p) {
         p.task.accept.metric = "roc_auc";
         p.task.accept.at_least = 0.7;
       },
       "task.accept.metric: expected \"accuracy\", \"loss\" or \"macro_f1\": areas under curves "
       "are of "
       "two classes, cifar10 has 10; found \"roc_auc\""},
      {[](Plan& p) { p.model.kind = "vit"; },
       "model.heads: expected an integer from 1 to 65536; found 0; nearest legal: model.heads = 1"},
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

TEST_CASE("values of the layout out of range") {
  const std::vector<Case> cases = {
      {[](Plan& p) { p.layout.zero = 2; },
       "layout.zero: expected an integer from 0 to 1; found 2, which is not in this version; "
       "nearest legal: layout.zero = 1"},
      {[](Plan& p) { p.layout.zero = 4; },
       "layout.zero: expected an integer from 0 to 1; found 4; nearest legal: layout.zero = 1"},
      {[](Plan& p) { p.layout.schedule = "zero_bubble"; },
       "layout.schedule: expected \"1f1b\" or \"gpipe\"; found \"zero_bubble\", which is not in "
       "this version; nearest legal: layout.schedule = \"1f1b\""},
      {[](Plan& p) {
         p.layout.stages = {2, 0};
       },
       "layout.stages: expected \"even\", \"measured\" or a list of integers from 1 to 1024; found "
       "[2, 0]; nearest legal: layout.stages = \"even\""},
      {[](Plan& p) { p.comm.bucket_bytes = 0; },
       "comm.bucket_bytes: expected an integer from 1 to 1073741824; found 0; nearest legal: "
       "comm.bucket_bytes = 1"},
      {[](Plan& p) { p.comm.timeout_s = 0; },
       "comm.timeout_s: expected a number in (0, 1000000], such as 600.0; found 0.0"},
      {[=](Plan& p) { p.comm.timeout_s = infinity; },
       "comm.timeout_s: expected a number in (0, 1000000]; found inf; nearest legal: "
       "comm.timeout_s = 1000000.0"},
      {[](Plan& p) { p.layout.threads = 0; },
       "layout.threads: expected an integer from 1 to 1024; found 0; nearest legal: layout.threads "
       "= 1"},
      {[](Plan& p) { p.checkpoint.every_steps = -200; },
       "checkpoint.every_steps: expected an integer from 0 to 1073741824; found -200; nearest "
       "legal: checkpoint.every_steps = 0"},
      {[](Plan& p) { p.checkpoint.keep = 0; },
       "checkpoint.keep: expected an integer from 1 to 1000; found 0; nearest legal: "
       "checkpoint.keep = 1"},
      {[](Plan& p) { p.checkpoint.keep = 1001; },
       "checkpoint.keep: expected an integer from 1 to 1000; found 1001; nearest legal: "
       "checkpoint.keep = 1000"},
      {[](Plan& p) { p.checkpoint.overhead = 1.0; },
       "checkpoint.overhead: expected a number in [0, 1), such as 0.02; found 1.0"},
      {[](Plan& p) { p.checkpoint.keep_every = -1; },
       "checkpoint.keep_every: expected an integer from 0 to 1073741824; found -1; nearest legal: "
       "checkpoint.keep_every = 0"},
      {[](Plan& p) { p.checkpoint.keep_best = 1001; },
       "checkpoint.keep_best: expected an integer from 0 to 1000; found 1001; nearest legal: "
       "checkpoint.keep_best = 1000"},
      {[](Plan& p) { p.layout.order = "tp"; },
       "layout.order: expected \"tp,dp,pp\", \"tp,pp,dp\", \"dp,tp,pp\", \"dp,pp,tp\", "
       "\"pp,tp,dp\" or \"pp,dp,tp\"; found \"tp\"; nearest legal: layout.order = \"tp,dp,pp\""},
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
  CHECK(faults_of([](Plan& p) { p.model.heads = 4; }) ==
        "model.heads: model.kind = \"mlp\" does not use it; remove it, or set model.kind = "
        "\"vit\"");
  CHECK(faults_of([](Plan& p) { p.model.patch = 0; }) ==
        "model.patch: model.kind = \"mlp\" does not use it; remove it, or set model.kind = "
        "\"vit\"");
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
      "= 4 with layout.dp = 2, or layout.tp = 4 with layout.dp = 1 and layout.pp = 2, or "
      "layout.tp = 2 with layout.dp = 4, or numerics.shards = 8");
}

TEST_CASE("ranks that were started are the layout's") {
  const Spoil eight = [](Plan& p) {
    p.layout.tp = 2;
    p.layout.dp = 4;
  };
  CHECK(faults_of(eight, 8) == "");
  CHECK(faults_of(eight, 4) ==
        "layout: 4 ranks were started, the layout needs tp 2 x dp 4 x pp 1 = 8: start 8, or for 4: "
        "layout.tp = 1 with layout.dp = 4, or layout.tp = 2 with layout.dp = 2, or layout.tp = 4 "
        "with layout.dp = 1");
  CHECK(faults_of(eight, 16) ==
        "layout: 16 ranks were started, the layout needs tp 2 x dp 4 x pp 1 = 8: start 8, or for "
        "16: layout.tp = 4 with layout.dp = 4, or layout.tp = 2 with layout.dp = 4 and layout.pp "
        "= 2, or layout.tp = 4 with layout.dp = 2 and layout.pp = 2");
  CHECK(faults_of([](Plan&) {}, 5) ==
        "layout: 5 ranks were started, the layout needs tp 1 x dp 1 x pp 1 = 1: start 1, or choose "
        "another number, since no layout of this plan has 5 (tp at most 4 shards, dp at most 4 "
        "lanes, pp at most 2 blocks); nearest that has one: 4 or 6");
  CHECK(faults_of([](Plan&) {}, 1000).find("nearest that has one: 32") != std::string::npos);
  CHECK(faults_of(eight, 1).starts_with("layout: 1 rank was started"));
}

TEST_CASE("heads divide the width and are whole pieces") {
  const auto vit = [](index_t hidden, index_t heads, index_t shards) {
    return [=](Plan& p) {
      p = sample_vit();
      p.model.hidden = hidden;
      p.model.heads = heads;
      p.numerics.shards = shards;
    };
  };
  CHECK(faults_of(vit(192, 8, 4)) == "");
  for (const index_t shards : {1, 2, 3, 6}) CHECK(faults_of(vit(192, 6, shards)) == "");
  CHECK(faults_of(vit(192, 6, 4)) ==
        "numerics.shards: expected a divisor of model.heads 6, so 1, 2, 3 or 6; found 4; nearest "
        "legal: numerics.shards = 3 or 6, or model.heads = 4 or 8");
  CHECK(faults_of(vit(192, 7, 4)) ==
        "model.heads: expected a divisor of model.hidden 192 that is a multiple of the 4 "
        "numerics.shards; found 7; nearest legal: model.heads = 8 or 4");
  CHECK(faults_of(vit(190, 8, 4)) ==
        "model.heads: expected a divisor of model.hidden 190 that is a multiple of the 4 "
        "numerics.shards; found 8; nearest legal: model.hidden = 192 or 184");
  CHECK(faults_of(vit(190, 7, 4)) ==
        "model.heads: expected a divisor of model.hidden 190 that is a multiple of the 4 "
        "numerics.shards; found 7; nearest legal: model.heads = 4 with model.hidden = 188");
  // Fast mode: pieces are the tp ranks.
  const Spoil fast = [](Plan& p) {
    p = sample_vit();
    p.numerics.mode = NumericsMode::fast;
    p.layout.tp = 3;
  };
  CHECK(faults_of(fast) ==
        "layout.tp: expected a divisor of model.heads 4, so 1, 2 or 4; found 3; nearest legal: "
        "layout.tp = 2 or 4, or model.heads = 3 or 6");
  CHECK(faults_of(fast, 3) ==
        "layout.tp: expected a divisor of model.heads 4, so 1, 2 or 4; found 3; nearest legal: "
        "model.heads = 3 or 6");
}

TEST_CASE("patches tile the image, and each shard gets a feature of them") {
  const auto spoil = [](index_t patch, index_t shards) {
    return [=](Plan& p) {
      p = sample_vit();
      p.model.patch = patch;
      p.model.heads = 8;
      p.numerics.shards = shards;
    };
  };
  CHECK(faults_of(spoil(5, 4)) ==
        "model.patch: expected a divisor of the 32 pixels of an image's side; found 5; nearest "
        "legal: model.patch = 4 or 8");
  CHECK(faults_of(spoil(1, 4)) ==
        "numerics.shards: expected at most one piece per input feature of a patch: 3 x 1 x 1 = 3; "
        "found 4; nearest legal: numerics.shards = 2, or model.patch = 2");
  CHECK(faults_of(spoil(1, 2)) == "");
}

TEST_CASE("a stage has one block at least") {
  const auto stages = [](index_t layers, index_t pp, std::vector<index_t> list) {
    return [=](Plan& p) {
      p.model.layers = layers;
      p.layout.pp = pp;
      p.layout.stages = list;
    };
  };
  CHECK(faults_of(stages(6, 6, {})) == "");
  CHECK(faults_of(stages(6, 8, {})) ==
        "layout.pp: expected at most one stage per block: pp <= model.layers 6; found 8; nearest "
        "legal: layout.pp = 6, or model.layers = 8");
  CHECK(faults_of(stages(6, 8, {}), 8) ==
        "layout.pp: expected at most one stage per block: pp <= model.layers 6; found 8; nearest "
        "legal: layout.tp = 1 with layout.dp = 2 and layout.pp = 4, or layout.tp = 2 with "
        "layout.dp = 1 and layout.pp = 4, or layout.tp = 1 with layout.dp = 4 and layout.pp = 2, "
        "or model.layers = 8");
  // One slip, one fault: the list is not blamed for pp, and goes where pp goes.
  CHECK(faults_of(stages(2, 3, {1, 1, 1})) ==
        "layout.pp: expected at most one stage per block: pp <= model.layers 2; found 3; nearest "
        "legal: layout.pp = 2 with layout.stages = \"even\", or model.layers = 3");
}

TEST_CASE("a list of stages adds up") {
  const auto stages = [](std::vector<index_t> list, index_t pp = 3) {
    return [=](Plan& p) {
      p.model.layers = 6;
      p.layout.pp = pp;
      p.layout.stages = list;
    };
  };
  CHECK(faults_of(stages({2, 1, 3})) == "");
  CHECK(faults_of(stages({2, 2, 3})) ==
        "layout.stages: expected 3 numbers for layout.pp = 3 that add up to model.layers = 6; "
        "found [2, 2, 3], 3 numbers with the sum 7; nearest legal: layout.stages = [2, 2, 2] or "
        "\"even\", or model.layers = 7");
  CHECK(faults_of(stages({3, 3})) ==
        "layout.stages: expected 3 numbers for layout.pp = 3 that add up to model.layers = 6; "
        "found [3, 3], 2 numbers with the sum 6; nearest legal: layout.stages = [2, 3, 1] or "
        "\"even\", or layout.pp = 2");
  CHECK(faults_of(stages({4}, 1)) ==
        "layout.stages: expected 1 number for layout.pp = 1 that add up to model.layers = 6; found "
        "[4], 1 number with the sum 4; nearest legal: layout.stages = [6] or \"even\", or "
        "model.layers = 4");
  CHECK(faults_of(stages({1, 1}), 3).find("or \"even\"") != std::string::npos);
}

TEST_CASE("measured stages need a checkpoint to be split again through") {
  const auto measured = [](index_t pp, bool at_end, index_t every_steps) {
    return [=](Plan& p) {
      p.model.layers = 6;
      p.layout.pp = pp;
      p.layout.measures_stages = true;
      p.checkpoint.at_end = at_end;
      p.checkpoint.every_steps = every_steps;
    };
  };
  CHECK(faults_of(measured(2, true, 0)) == "");
  CHECK(faults_of(measured(2, false, 5)) == "");
  CHECK(faults_of(measured(1, false, 0)) == "");
  CHECK(faults_of(measured(2, false, 0)) ==
        "layout.stages: expected a plan that saves, for \"measured\": stages are split again through "
        "a checkpoint; found \"measured\", and no key of [checkpoint] that saves; nearest legal: "
        "checkpoint.at_end = true, or layout.stages = \"even\"");
}

TEST_CASE("ZeRO and sequence parallel fit every layout") {
  for (const index_t tp : {1, 3, 4}) {
    for (const index_t dp : {1, 3, 4}) {
      CHECK(faults_of([=](Plan& p) {
              p.layout.tp = tp;
              p.layout.dp = dp;
              p.layout.zero = 1;
              p.layout.sequence_parallel = true;
            }) == "");
    }
  }
}

TEST_CASE("exactly one of steps and epochs") {
  CHECK(faults_of([](Plan& p) { p.run.epochs = 1; }) ==
        "run.steps: expected either run.steps or run.epochs; found both: remove one");
  CHECK(faults_of([](Plan& p) { p.run.steps.reset(); }) ==
        "run.steps: expected either run.steps or run.epochs; found neither: set one, such as "
        "run.epochs = 10");
}

TEST_CASE("a target has a metric and the value on the side on which it is better") {
  const auto target = [](const char* metric, std::optional<double> least,
                         std::optional<double> most) {
    return faults_of(
        [=](Plan& p) { p.task.target = {.metric = metric, .at_least = least, .at_most = most}; });
  };
  CHECK(target("none", {}, {}) == "");
  CHECK(target("accuracy", 0.6, {}) == "");
  CHECK(target("loss", {}, 1.2) == "");
  CHECK(target("none", 0.6, {}) ==
        "task.target.metric: expected a metric for the value that it is to reach; found \"none\" "
        "with at_least = 0.6");
  CHECK(target("accuracy", {}, {}) ==
        "task.target.at_least: expected task.target.at_least alone for the metric accuracy, such "
        "as 0.6; found neither; nearest legal: task.target.at_least = 0.6");
  CHECK(target("accuracy", {}, 0.6) ==
        "task.target.at_least: expected task.target.at_least alone for the metric accuracy, such "
        "as 0.6; found at_most = 0.6");
  CHECK(target("loss", 0.5, 1.2) ==
        "task.target.at_most: expected task.target.at_most alone for the metric loss, such as 1.2; "
        "found at_least = 0.5 and at_most = 1.2");
  CHECK(target("accuracy", 1.5, {}) ==
        "task.target.at_least: expected a number in [0, 1]; found 1.5; nearest legal: "
        "task.target.at_least = 1.0");
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
