// Which checkpoints a run leaves, as a user meets it: those of every M-th step and the best by the
// evaluations that eval.jsonl has, over a resume, and with saves that are not waited for.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;

const std::string evaluated = "--set eval.every_epochs=1";  // 20 steps are an epoch

using Lines = std::vector<nlohmann::json>;

Lines lines_of(const std::string& path) {
  Lines all;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

// Has it that a step was this good.
void alter_evaluation(const std::string& run, int step, double accuracy) {
  Lines all = lines_of(run + "/eval.jsonl");
  std::ofstream file(run + "/eval.jsonl");
  int num_altered = 0;
  for (nlohmann::json& line : all) {
    if (line.at("step") == step) line["accuracy"] = accuracy, ++num_altered;
    file << line.dump() << "\n";
  }
  CHECK(num_altered == 1);
}

std::vector<std::string> folders(const std::string& run, const std::vector<int>& steps) {
  std::vector<std::string> paths;
  for (const int step : steps) paths.push_back(step_folder(run, step));
  return paths;
}

}  // namespace

TEST_CASE("the best checkpoint stays as long as it is the best, over resumes") {
  for (const bool async : {false, true}) {
    INFO((async ? "async" : "awaited"));
    const SmallPlan small{
        .model = "mlp", .steps = 100, .every_steps = 20, .keep = 1, .async = async};
    const std::string plan = write_plan(small, "kept-best"), run = fresh_run("kept-best");
    const auto go_on = [&](int steps, const Layout& layout, const std::string& more = "",
                           const std::string& from = "auto") {
      // The learning rate follows run.steps, so the plan differs where that does.
      const ProcessResult result =
          train(plan, run, layout,
                evaluated + " --allow-plan-change --resume " + from +
                    " --set run.steps=" + std::to_string(steps) + " " + more);
      INFO(result.text);
      REQUIRE(result.exit_code == 0);
    };
    const std::string best = "--set checkpoint.keep_best=1";
    go_on(20, {1, ""}, best);
    alter_evaluation(run, 20, 2.0);
    go_on(60, {2, "layout.dp=2 layout.zero=1"}, best);
    CHECK(step_folders(run) == folders(run, {20, 60}));
    CHECK(valid_step_folders(run) == step_folders(run));
    CHECK(lines_of(run + "/eval.jsonl").size() == 3);
    // Another one is as good: the earlier stays. Then it is better.
    alter_evaluation(run, 60, 2.0);
    go_on(80, {2, "layout.tp=2"}, best);
    CHECK(step_folders(run) == folders(run, {20, 80}));
    alter_evaluation(run, 80, 3.0);
    go_on(100, {1, ""}, best);
    CHECK(step_folders(run) == folders(run, {80, 100}));
    // A resume decides by what is left of the evaluations.
    alter_evaluation(run, 100, 4.0);
    go_on(100, {1, ""}, best, "80");
    CHECK(lines_of(run + "/eval.jsonl").size() == 5);
    CHECK(step_folders(run) == folders(run, {80, 100}));
    // Not asked for any more: what is older goes with the next save, or at the next begin.
    go_on(100, {1, ""});
    CHECK(step_folders(run) == folders(run, {100}));
  }
}

TEST_CASE("the best by the target's metric, and every M-th step, in one run") {
  const SmallPlan small{.model = "mlp", .steps = 120, .every_steps = 10, .keep = 1, .async = true};
  const std::string run = fresh_run("kept-target");
  const ProcessResult result =
      train(write_plan(small, "kept-target"), run, {2, "layout.dp=2"},
            evaluated +
                " --set checkpoint.keep_best=1 --set checkpoint.keep_every=50"
                " --set \"task.target={metric=\\\"loss\\\", at_most=0.1}\""
                " --set optimizer.lr=1.0 --set optimizer.schedule.warmup_steps=120");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  const Lines evaluations = lines_of(run + "/eval.jsonl");
  REQUIRE(evaluations.size() == 6);
  const auto best =
      std::min_element(evaluations.begin(), evaluations.end(),
                       [](const auto& a, const auto& b) { return a.at("loss") < b.at("loss"); });
  // The longer such steps are, the worse: the loss rises. Else the newest would be the best.
  REQUIRE(best->at("step") < 120);
  std::vector<int> steps = {50, 100, 120, best->at("step")};
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  CHECK(step_folders(run) == folders(run, steps));
  CHECK(valid_step_folders(run) == step_folders(run));
}
