// warnings(): each with its message; and that its advice takes it away.
#include <catch2/catch.hpp>
#include <functional>

#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;
using weft::testing::sample_vit;
using weft::testing::with_fix;

namespace {

// hidden 192, so that nothing is narrow, and a batch that fills pipelines.
Plan quiet_plan() {
  Plan plan = sample_plan();
  plan.model.hidden = 192;
  plan.model.layers = 6;
  return plan;
}

// All warnings; following any advice of one takes it away and leaves the plan legal.
std::string warnings_of(const std::function<void(Plan&)>& change) {
  Plan plan = quiet_plan();
  change(plan);
  REQUIRE(validate(plan, std::nullopt).empty());
  std::string text;
  for (const PlanFault& warning : warnings(plan)) {
    text += (text.empty() ? "" : "\n") + warning.key + ": " + warning.message;
    for (const PlanFix& fix : warning.fixes) {
      const Plan changed = with_fix(plan, fix);
      CHECK(validate(changed, std::nullopt).empty());
      for (const PlanFault& other : warnings(changed)) CHECK(other.message != warning.message);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("warnings name imbalance, trees, narrow pieces and warm-up") {
  Plan plan = sample_plan();
  plan.model.hidden = 192;
  CHECK(warnings(plan).empty());

  plan.numerics.shards = 12;
  plan.layout.tp = 5;
  plan.optimizer.schedule = {"cosine", 100, 0.0};
  const std::vector<PlanFault> found = warnings(plan);
  REQUIRE(found.size() == 4);
  CHECK(found[0].message ==
        "12 numerics.shards on 5 ranks are 2 2 3 2 3 a rank: the largest share is 1.25 times the "
        "mean; balanced: layout.tp = 4 or 6");
  CHECK(found[1].key == "numerics.shards");
  CHECK(found[1].message.find("tree nodes a rank") != std::string::npos);
  CHECK(found[2].message.find("64 wide") != std::string::npos);
  CHECK(found[3].key == "optimizer.schedule.warmup_steps");

  plan = sample_plan();
  plan.numerics.mode = NumericsMode::fast;
  REQUIRE(warnings(plan).size() == 1);
  CHECK(warnings(plan)[0].key == "numerics.mode");
}

TEST_CASE("uneven stages") {
  CHECK(warnings_of([](Plan& p) { p.layout.pp = 2; }) == "");
  CHECK(warnings_of([](Plan& p) {
          p.layout.pp = 4;
          p.batch.global = 512;
          p.batch.micro = 4;
        }) ==
        "layout.pp: 6 blocks on 4 stages are 1 2 1 2 a stage: the largest share is 1.33 times the "
        "mean; balanced: layout.pp = 3 or 6");
  CHECK(warnings_of([](Plan& p) {
          p.layout.pp = 2;
          p.layout.stages = {4, 2};
        }) ==
        "layout.stages: 6 blocks on 2 stages are 4 2 a stage: the largest share is 1.33 times the "
        "mean; balanced: layout.stages = \"even\"");
}

TEST_CASE("long bubbles") {
  // 8 microbatches: 2 stages wait 1/9, 3 wait 2/10 = 20 %, 6 wait 5/13.
  CHECK(warnings_of([](Plan& p) { p.layout.pp = 3; }) == "");
  CHECK(warnings_of([](Plan& p) { p.layout.pp = 6; }) ==
        "layout.pp: 6 stages with 8 microbatches a step wait (6 - 1) / (8 + 6 - 1) = 38 % of it at "
        "best; at most 20 % with layout.pp <= 3");
}

TEST_CASE("rows that do not divide, with sequence parallel") {
  const auto rows = [](bool sequence_parallel) {
    return [=](Plan& p) {
      p.layout.tp = 4;
      p.batch.micro = 2;  // 2 rows in 4 token blocks
      p.layout.sequence_parallel = sequence_parallel;
    };
  };
  CHECK(warnings_of(rows(false)) == "");
  CHECK(warnings_of(rows(true)) ==
        "layout.sequence_parallel: the 2 rows of a microbatch, in 4 token blocks, are 0 1 0 1 rows "
        "on the 4 tp ranks: the largest share is 2.00 times the mean");
  CHECK(warnings_of([](Plan& p) {
          p.layout.tp = 4;
          p.layout.sequence_parallel = true;
        }) == "");
}

TEST_CASE("a time limit without checkpoints") {
  const auto limited = [](index_t every_steps, bool at_end) {
    return [=](Plan& p) {
      p.run.time_limit = {60};
      p.checkpoint.every_steps = every_steps;
      p.checkpoint.at_end = at_end;
    };
  };
  CHECK(warnings_of(limited(0, true)) == "");
  CHECK(warnings_of(limited(2, false)) == "");
  CHECK(warnings_of([&](Plan& p) {
          limited(0, false)(p);
          p.checkpoint.every = {60};
        }) == "");
  CHECK(warnings_of(limited(0, false)) ==
        "run.time_limit: the plan saves no checkpoints, so a run that is stopped there is lost; "
        "set checkpoint.every_steps or checkpoint.at_end = true");
}

TEST_CASE("a best one to keep, where none but the last can be it") {
  // 45000 / 128: an epoch of 351 steps, evaluated after each.
  const auto best = [](index_t every_steps, index_t steps, index_t epochs = 1) {
    return [=](Plan& p) {
      p.run.steps = steps;
      p.checkpoint.every_steps = every_steps;
      p.checkpoint.keep_best = 1;
      p.eval.every_epochs = epochs;
    };
  };
  CHECK(warnings_of(best(351, 1000)) == "");
  CHECK(warnings_of(best(117, 352)) == "");
  CHECK(warnings_of(best(2, 703)) == "");  // 702 is
  const std::string none =
      "checkpoint.keep_best: no step before the last is both saved and evaluated, so no earlier "
      "checkpoint can be the best: ";
  CHECK(warnings_of(best(2, 702)) ==
        none +
            "steps are saved at multiples of 2 steps, and evaluated at multiples of 351; all "
            "evaluated ones are saved with checkpoint.every_steps = 1 or 3");
  CHECK(warnings_of(best(200, 1000)) ==
        none +
            "steps are saved at multiples of 200 steps, and evaluated at multiples of 351; all "
            "evaluated ones are saved with checkpoint.every_steps = 117 or 351");
  CHECK(warnings_of(best(0, 1000)) ==
        none +
            "steps are saved only at the end, and evaluated at multiples of 351; all evaluated "
            "ones are saved with checkpoint.every_steps = 351");
  CHECK(warnings_of(best(351, 1000, 0)) ==
        none +
            "steps are saved at multiples of 351 steps, and evaluated only at the end; all "
            "evaluated ones are saved with checkpoint.every_steps = 351 and eval.every_epochs "
            "= 1");
  CHECK(warnings_of(best(10, 100)) ==
        none +
            "steps are saved at multiples of 10 steps, and evaluated only at the end; with an "
            "epoch of 351 steps a run of 100 has nothing to choose from");
  CHECK(warnings_of([&](Plan& p) {
          best(0, 1000)(p);
          p.checkpoint.every = {60};
        }) == none +
                  "steps are saved by the clock alone, and evaluated at multiples of 351; all "
                  "evaluated ones are saved with checkpoint.every_steps = 351");
}

TEST_CASE("steps to keep that are never saved") {
  const auto every = [](index_t keep_every, index_t every_steps) {
    return [=](Plan& p) {
      p.run.steps = 1000;
      p.checkpoint.every_steps = every_steps;
      p.checkpoint.keep_every = keep_every;
    };
  };
  CHECK(warnings_of(every(400, 200)) == "");
  CHECK(warnings_of(every(300, 200)) == "");   // 600 is
  CHECK(warnings_of(every(1000, 300)) == "");  // the end
  CHECK(warnings_of(every(450, 200)) ==
        "checkpoint.keep_every: no step that is surely saved is a multiple of 450: steps are saved "
        "at multiples of 200 steps; kept are some with checkpoint.keep_every = 400 or 600");
  CHECK(warnings_of(every(300, 0)) ==
        "checkpoint.keep_every: no step that is surely saved is a multiple of 300: steps are saved "
        "only at the end");
}

TEST_CASE("narrow heads") {
  const auto vit = [](index_t hidden) {
    return [=](Plan& p) {
      p = sample_vit();
      p.model.hidden = hidden;
    };
  };
  CHECK(warnings_of(vit(384)) == "");
  CHECK(warnings_of(vit(192)) ==
        "numerics.shards: pieces of attention's heads are 48 wide; below 96 the price of computing "
        "piece by piece passes 5 %");
  CHECK(warnings_of(vit(48)) ==
        "numerics.shards: pieces of attention's heads are 12 wide, of the feed-forward width are "
        "48 wide; below 96 the price of computing piece by piece passes 5 %");
}
