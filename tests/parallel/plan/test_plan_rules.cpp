// validate(): every rule with its message, and several at once.
#include <catch2/catch.hpp>

#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::faults_of;
using weft::testing::sample_plan;
using weft::testing::sample_vit;
using weft::testing::Spoil;

TEST_CASE("the sample plan is legal, alone and on its ranks") {
  CHECK(faults_of([](Plan&) {}) == "");
  CHECK(faults_of([](Plan&) {}, 1) == "");
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
