// checkpoint.overhead on a slow disk: how much of the time steps wait for saving, by what a run's
// log says of each of its steps.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;

const Layout two{2, "layout.dp=2 layout.zero=1"};

// Between two steps of run.jsonl: time that was no step's. An operation of the slow disk takes
// 50 ms, so the longer ones are saves.
struct Pause {
  int step = 0;  // done before it
  double begin_s = 0.0;
  double wait_s = 0.0;
};

struct Log {
  std::vector<Pause> saves;
  double end_s = 0.0;
};

Log read_log(const std::string& run) {
  Log log;
  std::ifstream lines(run + "/run.jsonl");
  for (std::string text; std::getline(lines, text);) {
    const auto line = nlohmann::json::parse(text);
    const double elapsed_s = line.at("elapsed_s");
    const double wait_s = elapsed_s - line.at("step_ms").get<double>() / 1000 - log.end_s;
    const int step = line.at("step");
    if (step > 1 && wait_s > 0.2) log.saves.push_back({step - 1, log.end_s, wait_s});
    log.end_s = elapsed_s;
  }
  return log;
}

nlohmann::json saving_of(const std::string& run) {
  std::ifstream file(run + "/summary.json");
  REQUIRE(file);
  return nlohmann::json::parse(file).at("checkpoints");
}

// Trains for so many seconds with a disk that is slow for rank 0; the other one waits for it.
void train_slowly(const std::string& run, const std::string& name, bool async, double overhead,
                  int seconds) {
  const SmallPlan small{
      .model = "mlp", .steps = 1000000, .every_steps = 0, .keep = 1000, .async = async};
  const ProcessResult result = train(write_plan(small, name), run, two,
                                     "--set checkpoint.overhead=" + std::to_string(overhead) +
                                         " --set run.time_limit=" + std::to_string(seconds) + "s",
                                     file_faults(run, run + ".operations", 0, 0, "slow-on"));
  INFO(result.text);
  REQUIRE(result.exit_code == 3);  // stopped by the time limit, with a checkpoint of its own
}

}  // namespace

TEST_CASE("steps wait for saving about as long as the plan allows") {
  const double budget = 0.25;
  const std::string run = fresh_run("overhead-awaited");
  train_slowly(run, "overhead-awaited", false, budget, 40);
  const Log log = read_log(run);
  const nlohmann::json saving = saving_of(run);
  INFO(saving.dump());
  REQUIRE(log.saves.size() >= 3);
  // The first after 1 / 0.25 steps; each on all ranks after the same step, and one at the stop.
  CHECK(log.saves.front().step == 4);
  const std::vector<std::string> valid = valid_step_folders(run);
  REQUIRE(valid.size() == log.saves.size() + 1);
  for (std::size_t i = 0; i < log.saves.size(); ++i)
    CHECK(valid[i] == step_folder(run, log.saves[i].step));
  // From the first save's begin to the last one's: whole rounds of a wait and what it bought.
  double waited_s = 0.0, longest_s = 0.0;
  for (std::size_t i = 0; i + 1 < log.saves.size(); ++i) waited_s += log.saves[i].wait_s;
  for (const Pause& pause : log.saves) longest_s = std::max(longest_s, pause.wait_s);
  const double share = waited_s / (log.saves.back().begin_s - log.saves.front().begin_s);
  INFO("share " << share << ", " << log.saves.size() << " saves in " << log.end_s << " s");
  CHECK(share <= budget * 1.05);  // the log's pauses have a little more in them than saving
  CHECK(share >= budget * 0.5);
  // The summary says the same.
  const double all_s = waited_s + log.saves.back().wait_s;
  CHECK(saving.at("overhead").get<double>() == Approx(all_s / log.end_s).epsilon(0.1));
  CHECK(saving.at("interval_s").get<double>() == Approx(longest_s / budget).epsilon(0.1));
}

TEST_CASE("saves that are not waited for are made more often, and within the budget") {
  const double budget = 0.25;
  const std::string run = fresh_run("overhead-async");
  train_slowly(run, "overhead-async", true, budget, 20);
  const nlohmann::json saving = saving_of(run);
  INFO(saving.dump());
  // One after the other, though the disk is as slow.
  const int on_the_way = saving.at("saved").get<int>() - 1;
  REQUIRE(on_the_way >= 3);
  // Each round keeps the budget; the run may have ended at the last one's begin.
  CHECK(saving.at("overhead") <= budget * on_the_way / (on_the_way - 1));
  CHECK(saving.at("waited_s") < saving.at("background_s"));
  CHECK(valid_step_folders(run).size() == saving.at("saved"));
}
