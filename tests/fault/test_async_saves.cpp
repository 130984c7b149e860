// checkpoint.async as a user meets it: a slow disk, a signal, a fault of training, a rank's death
// while a save is under way. Other kills and full disks are in test_kill_sweep, test_kill_resume
// and test_full_disk.
#include <catch2/catch.hpp>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"
#include "tests/fault/job.hpp"

namespace {

using namespace weft::test;
using namespace std::chrono_literals;
using Clock = Job::Clock;

const Layout two{2, "layout.dp=2 layout.zero=1"};

nlohmann::json summary_of(const std::string& run) {
  std::ifstream file(run + "/summary.json");
  REQUIRE(file);
  return nlohmann::json::parse(file);
}

// Of each step: when it was done.
std::vector<double> elapsed_of(const std::string& run) {
  std::vector<double> elapsed;
  std::ifstream lines(run + "/run.jsonl");
  for (std::string line; std::getline(lines, line);)
    elapsed.push_back(nlohmann::json::parse(line).at("elapsed_s"));
  return elapsed;
}

Outcome undisturbed(const SmallPlan& small) {
  const std::string run = fresh_run("async-reference");
  const ProcessResult result = train(write_plan(small, "async-reference"), run);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  return outcome_of(run);
}

}  // namespace

TEST_CASE("steps go on while a slow disk takes a checkpoint") {
  SmallPlan small{.steps = 7, .every_steps = 4};
  const Outcome reference = undisturbed(small);
  small.async = true;
  const std::string run = fresh_run("async-slow"), log = run + ".operations";
  const ProcessResult result =
      train(write_plan(small, "async-slow"), run, two, {}, file_faults(run, log, 0, 0, "slow-on"));
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run) == reference);
  const std::vector<std::string> both = {step_folder(run, 4), step_folder(run, 7)};
  CHECK(valid_step_folders(run) == both);
  // The steps after the save's begin came before most of what it took, which the end waited for.
  const auto saving = summary_of(run).at("checkpoints");
  const std::vector<double> elapsed = elapsed_of(run);
  REQUIRE(elapsed.size() == 7);
  INFO(saving.dump());
  CHECK(saving.at("saved") == 2);
  CHECK(saving.at("waited_s") > 0.0);
  CHECK(elapsed[6] - elapsed[3] < saving.at("background_s").get<double>() / 2);
}

TEST_CASE("the next checkpoint that is due waits for the one under way") {
  SmallPlan small{.steps = 4, .every_steps = 1, .keep = 4, .async = true};
  const Outcome reference = undisturbed(small);
  const std::string run = fresh_run("async-often"), log = run + ".operations";
  const ProcessResult result =
      train(write_plan(small, "async-often"), run, two, {}, file_faults(run, log, 1, 0, "slow-on"));
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run) == reference);
  const std::vector<std::string> all = {step_folder(run, 1), step_folder(run, 2),
                                        step_folder(run, 3), step_folder(run, 4)};
  CHECK(valid_step_folders(run) == all);
  CHECK(summary_of(run).at("checkpoints").at("waited_s") > 0.1);
}

TEST_CASE("a signal while a save is under way: that one is finished, then the last step's") {
  const SmallPlan small{.steps = 100, .every_steps = 5, .keep = 40, .async = true};
  const std::string plan = write_plan(small, "async-stop");
  const std::string run = fresh_run("async-stop"), log = run + ".operations";
  // Rank 1's third operation is one of its shard of the first checkpoint.
  const ProcessResult stopped = train(plan, run, two, {}, file_faults(run, log, 1, 2, "term"));
  INFO(stopped.text);
  REQUIRE(stopped.exit_code == 3);
  const std::vector<std::string> valid = valid_step_folders(run);
  REQUIRE(valid.size() >= 2);
  CHECK(valid.front() == step_folder(run, 5));
  CHECK(valid == step_folders(run));
  const int steps = num_logged_steps(run);
  CHECK(steps < small.steps);
  CHECK(valid.back() == step_folder(run, steps));
  // On from there, and from the start: the same.
  const ProcessResult resumed = train(plan, run, layouts().front(), "--resume auto");
  INFO(resumed.text);
  REQUIRE(resumed.exit_code == 0);
  CHECK(outcome_of(run) == undisturbed(small));
}

TEST_CASE("training that fails leaves the checkpoint that was under way") {
  const SmallPlan small{.steps = 40, .every_steps = 1, .keep = 40, .async = true};
  const std::string run = fresh_run("async-nan"), log = run + ".operations";
  // The loss is no number after a few steps.
  const ProcessResult result =
      train(write_plan(small, "async-nan"), run, two,
            "--set optimizer.lr=1e30 --set optimizer.schedule.warmup_steps=0",
            file_faults(run, log, 0, 0, "slow-on"));
  INFO(result.text);
  REQUIRE(result.exit_code == 1);
  CHECK(contains(result.text, "Stopped before the update"));
  const int steps = num_logged_steps(run);
  REQUIRE(steps >= 1);
  const std::vector<std::string> valid = valid_step_folders(run);
  REQUIRE_FALSE(valid.empty());
  CHECK(valid.back() == step_folder(run, steps));
}

namespace {

bool has_begun_second_save(const std::string& log) {
  for (const FileOperation& one : read_operations(log))
    if (contains(one.path, "/.staging-8-")) return true;
  return false;
}

// One of three ranks dies once the second save is under way and `num_steps` steps are logged: 11
// lets the others wait for it, since the third is due after the next one.
void kill_in_second_save(const SmallPlan& small, int victim, int num_steps,
                         const Outcome& reference) {
  const std::string plan = write_plan(small, "async-death");
  const std::string run = fresh_run("async-death"), log = run + ".operations";
  const Layout three{3, "layout.dp=3 layout.zero=1"};
  Job job(3, WEFT_PROGRAM, "train " + plan + three.arguments() + " --run " + run, run,
          file_faults(run, log, 0, 0, "slow-on"));
  job.find_ranks(3);
  INFO("victim " << victim << ", after " << num_steps << " steps");
  const auto begin = Clock::now();
  while (!has_begun_second_save(log) || num_logged_steps(run) < num_steps) {
    if (Clock::now() - begin > 60s || job.ended_within(0, 1ms))
      FAIL("no second save: " << job.output());
  }
  REQUIRE(job.kill_rank(victim));
  const auto killed = Clock::now();
  for (int rank = 0; rank < 3; ++rank) {
    INFO("rank " << rank);
    CHECK(job.ended_within(rank, killed + 5s - Clock::now()));
  }
  CHECK(job.launcher_ended_within(10s));
  const std::string text = job.output();
  INFO(text);
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    const std::string me = "rank " + std::to_string(rank);
    CHECK(contains(text, me + " exits with 4"));
    const auto line = text.find(me + " ends the run: ");
    REQUIRE(line != std::string::npos);
    const std::string message = text.substr(line, text.find('\n', line) - line);
    CHECK(contains(message, "rank " + std::to_string(victim) + " (pid " +
                                std::to_string(job.pid(victim)) + " on host "));
  }
  // The save that was under way came to nothing, and the one before is as it was.
  CHECK(step_folders(run) == std::vector<std::string>{step_folder(run, 4)});
  CHECK(valid_step_folders(run) == step_folders(run));
  const ProcessResult resumed = train(plan, run, layouts()[2], "--resume auto");
  INFO(resumed.text);
  REQUIRE(resumed.exit_code == 0);
  CHECK(outcome_of(run) == reference);
}

}  // namespace

TEST_CASE("a rank that dies while a save is under way: the others end, the older one stays") {
  const SmallPlan small{.steps = 20, .every_steps = 4, .async = true};
  const Outcome reference = undisturbed(small);
  for (const int victim : {2, 0}) {
    for (const int num_steps : {8, 11}) kill_in_second_save(small, victim, num_steps, reference);
  }
}

TEST_CASE("a checkpoint by the clock, on all ranks after the same step") {
  const SmallPlan small{.steps = 800, .every_steps = 0, .keep = 1000, .async = true};
  const std::string run = fresh_run("async-clock");
  const ProcessResult result =
      train(write_plan(small, "async-clock"), run, two, "--set checkpoint.every=1s");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json summary = summary_of(run);
  const double seconds =
      summary.at("training_s").get<double>() + summary.at("checkpoint_s").get<double>();
  INFO(summary.at("checkpoints").dump() << " in " << seconds << " s");
  const int saved = summary.at("checkpoints").at("saved");
  // One at the end; the others a second apart at least, and not much more but on a busy machine.
  CHECK(saved <= 2 + static_cast<int>(seconds));
  CHECK(saved >= 1 + static_cast<int>(seconds / 3));
  CHECK(valid_step_folders(run).size() == static_cast<std::size_t>(saved));
}
