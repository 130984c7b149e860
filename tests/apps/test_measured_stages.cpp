// layout.stages = "measured" as a user starts it: a model whose first stage has more to do is split
// again while it trains, and the bits are those of one rank; also through kills, a full disk and a
// stop.
#include <catch2/catch.hpp>

#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
using Json = nlohmann::json;
using Blocks = std::vector<int>;

// 3,072 features into 256 are six blocks' work forward and three back (there is no gradient of
// samples), so that the first of two even stages has more than twice the other's work.
std::string plan(int steps = 40) {
  return write_plan({.model = "mlp", .hidden = 256, .steps = steps, .every_steps = 20},
                    "measured") +
         " --set model.layers=6 --set model.mlp_ratio=1 --set batch.global=160 --set "
         "batch.micro=20 "
         "--set numerics.lanes=2";
}

const Layout measured{2, "layout.pp=2 layout.stages=measured"};

const Outcome& undisturbed() {
  static const Outcome outcome = [] {
    const std::string run = fresh_run("measured-reference");
    REQUIRE(train(plan(), run).exit_code == 0);
    return outcome_of(run);
  }();
  return outcome;
}

// The events of that kind, in order.
std::vector<Json> events(const std::string& run, const std::string& kind) {
  std::vector<Json> found;
  std::ifstream file(run + "/events.jsonl");
  for (std::string line; std::getline(file, line);) {
    const Json event = Json::parse(line);
    if (event.contains(kind)) found.push_back(event.at(kind));
  }
  return found;
}

Json summary_of(const std::string& run) {
  std::ifstream file(run + "/summary.json");
  return Json::parse(file);
}

std::string drill(const std::string& order) { return "WEFT_DRILL='" + order + "' "; }

std::string run_folder(const std::string& name) { return test_folder() + "/" + name + "/run"; }

// A run in that folder, made anew until the measured times speak for another split: beside other
// work on the machine they may not, now and then.
ProcessResult train_to_a_split(const std::string& plan, const std::string& name,
                               const std::string& environment = "") {
  ProcessResult result;
  for (int i = 0; i < 8; ++i) {
    const std::string run = fresh_run(name);
    result = train(plan, run, measured, "", environment);
    const auto found = events(run, "stages_measured");
    if (!found.empty() && found[0].at("after") != found[0].at("before")) break;
  }
  return result;
}

}  // namespace

TEST_CASE("a run with an uneven model is split again, and its bits are those of one rank") {
  const ProcessResult result = train_to_a_split(plan(), "measured-run");
  const std::string run = run_folder("measured-run");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run) == undisturbed());

  const auto found = events(run, "stages_measured");
  REQUIRE(found.size() == 1);
  CHECK(found[0].at("step") == 13);
  CHECK(found[0].at("before") == Blocks{3, 3});
  const Blocks after = found[0].at("after");
  REQUIRE(after.size() == 2);
  CHECK(after[0] < 3);
  CHECK(after[0] + after[1] == 6);
  CHECK(found[0].at("stage_ms")[0] > found[0].at("stage_ms")[1]);
  CHECK(found[0].at("predicted_gain") > 0.02);
  // 20 rows of 256 floats.
  const Json cut = {{"behind_block", 2}, {"activation_bytes", 20480}, {"gradient_bytes", 20480}};
  CHECK(found[0].at("cuts") == Json::array({cut}));

  const auto split = events(run, "stages_split");
  REQUIRE(split.size() == 1);
  CHECK(split[0].at("step") == 13);
  CHECK(split[0].at("after") == after);
  CHECK(split[0].at("cuts")[0].at("behind_block") == after[0] - 1);
  const auto gain = events(run, "stages_gain");
  REQUIRE(gain.size() == 1);
  CHECK(gain[0].at("step") == 26);

  const Json stages = summary_of(run).at("stages");
  CHECK(stages.at("now") == after);
  for (const char* key : {"predicted_gain", "achieved_gain", "moved_ms", "step_ms_after"}) {
    INFO(key);
    CHECK(stages.at(key).is_number());
  }
  CHECK(stages.at("achieved_gain") == gain[0].at("achieved_gain"));
  CHECK(contains(result.text, "stages [3, 3] measured"));
  CHECK(contains(result.text, "from here on"));
  CHECK(contains(result.text, "predicted was"));
}

TEST_CASE("a kill while stages are split again loses no step") {
  for (const char* order :
       {"kill at=split rank=1 step=1", "kill at=split rank=0 step=1", "kill at=load rank=0 step=1",
        "kill at=load.done rank=1 step=1", "kill at=save.commit.done rank=0 step=1"}) {
    const ProcessResult killed = train_to_a_split(plan(), "measured-killed", drill(order));
    const std::string run = run_folder("measured-killed");
    INFO(order << "\n" << killed.text);
    REQUIRE(killed.exit_code != 0);
    REQUIRE(num_logged_steps(run) == 13);
    REQUIRE(events(run, "stages_split").empty());
    const ProcessResult resumed = train(plan(), run, measured, "--resume auto");
    INFO(resumed.text);
    REQUIRE(resumed.exit_code == 0);
    CHECK(contains(resumed.text, "step-000000013"));
    CHECK(outcome_of(run) == undisturbed());
  }
}

TEST_CASE("a stopped run goes on with the split that it had come to, and measures again") {
  const std::string run = fresh_run("measured-stopped");
  const ProcessResult stopped =
      train(plan(), run, measured, "", drill("term at=step rank=0 step=12"));
  INFO(stopped.text);
  // The ranks vote in the step after: the very one at which a split is due. Saved, and left as it
  // is.
  REQUIRE(stopped.exit_code == 3);
  REQUIRE(events(run, "stopped_at_step") == std::vector<Json>{13});
  CHECK(events(run, "stages_split").empty());

  const std::string long_plan = plan(80);
  const ProcessResult first =
      train_to_a_split(long_plan, "measured-chain", drill("term at=step rank=0 step=30"));
  const std::string long_run = run_folder("measured-chain");
  INFO(first.text);
  REQUIRE(first.exit_code == 3);
  REQUIRE(events(long_run, "stages_split").size() == 1);
  const Blocks known = events(long_run, "stages_split")[0].at("after");
  const ProcessResult second = train(long_plan, long_run, measured, "--resume auto");
  INFO(second.text);
  REQUIRE(second.exit_code == 0);
  const auto found = events(long_run, "stages_measured");
  REQUIRE(found.size() == 2);
  CHECK(found[0].at("before") == Blocks{3, 3});
  CHECK(found[1].at("before") == known);
}

TEST_CASE("where the state cannot be saved the split stays, and the run goes on") {
  const ProcessResult result =
      train_to_a_split(plan(), "measured-full", drill("full at=save.shard rank=1 step=1"));
  const std::string run = run_folder("measured-full");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run) == undisturbed());
  CHECK(contains(result.text, "ALARM"));
  CHECK(contains(result.text, "stages [3, 3] stay: the checkpoint"));
  CHECK(events(run, "stages_split").empty());
  REQUIRE(events(run, "stages_stay").size() == 1);
  CHECK(summary_of(run).at("stages").at("now") == Blocks{3, 3});
}

TEST_CASE("where the state does not read back it is not dropped for what lies on the disk") {
  const ProcessResult result =
      train_to_a_split(plan(), "measured-unsound", drill("full at=save.read_back rank=1 step=1"));
  const std::string run = run_folder("measured-unsound");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run) == undisturbed());
  CHECK(contains(result.text, "does not read back"));
  CHECK(contains(result.text, "stages [3, 3] stay: the checkpoint"));
  CHECK(events(run, "stages_split").empty());
}

TEST_CASE("too few steps, and one stage, are no reason to measure") {
  const std::string run = fresh_run("measured-short");
  const ProcessResult result = train(plan(25), run, measured);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.text, "25 steps are left and 26 are needed"));
  CHECK(events(run, "stages_measured").empty());

  const std::string alone = fresh_run("measured-alone");
  REQUIRE(train(plan(40), alone, {1, "layout.stages=measured"}).exit_code == 0);
  CHECK(summary_of(alone).at("stages").is_null());
  CHECK(events(alone, "stages_measured").empty());
}

TEST_CASE("what measured stages cannot be is said") {
  const ProcessResult unsaved =
      train(plan(), fresh_run("measured-unsaved"), measured,
            "--set checkpoint.every_steps=0 --set checkpoint.at_end=false");
  INFO(unsaved.text);
  CHECK(unsaved.exit_code == 2);
  CHECK(contains(unsaved.text, "nearest legal: checkpoint.at_end = true"));
  const ProcessResult grid = run_weft_ranks(
      2, "layouts " + plan() + " --grid \"pp=2 stages=measured\" --steps 4 --warmup 1");
  INFO(grid.text);
  CHECK(grid.exit_code == 2);
  CHECK(contains(grid.text, "expected even or a list of blocks, such as [2,4]; found measured"));
}
