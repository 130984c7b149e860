// Runs that are asked to stop, by signals or by their time limit: all ranks save the same step and
// end with 3, and the run goes on on another layout to the bits of the run that nobody disturbed.
#include <catch2/catch.hpp>

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/fault/checkpoint_run.hpp"
#include "tests/fault/job.hpp"

namespace {

using namespace std::chrono_literals;
using namespace weft::test;
using nlohmann::json;

const Layout two{2, "layout.tp=2 layout.sequence_parallel=true"};
const Layout two_stages{2, "layout.pp=2 comm.transport=mpi"};
const Layout four{4, "layout.tp=2 layout.dp=2 layout.zero=1"};
const Layout four_stages{4, "layout.dp=2 layout.pp=2 layout.order=pp,tp,dp"};

// Long enough to be met in its middle; no checkpoint is due before its end.
constexpr int num_steps = 1500;  // more than a second, on any machine
struct Undisturbed {
  std::string plan;
  Outcome outcome;
  std::vector<std::string> evaluations;
};

// Of each line of eval.jsonl what must not depend on stops.
std::vector<std::string> evaluations_of(const std::string& run) {
  std::vector<std::string> found;
  std::ifstream file(run + "/eval.jsonl");
  for (std::string line; std::getline(file, line);) {
    json one = json::parse(line);
    for (const char* time : {"ms", "training_s", "elapsed_s"}) one.erase(time);
    found.push_back(one.dump());
  }
  return found;
}

const Undisturbed& undisturbed() {
  static const Undisturbed found = [] {
    const SmallPlan small{.model = "vit", .hidden = 32, .steps = num_steps, .every_steps = 0};
    const std::string plan = write_plan(small, "stop") + " --set eval.every_epochs=5";
    const std::string run = fresh_run("stop-reference");
    const ProcessResult result = train(plan, run);
    INFO(result.text);
    REQUIRE(result.exit_code == 0);
    return Undisturbed{plan, outcome_of(run), evaluations_of(run)};
  }();
  REQUIRE(found.outcome.loss_bits.size() == num_steps);
  REQUIRE(found.evaluations.size() == num_steps / 100);
  return found;
}

json summary_of(const std::string& run) {
  std::ifstream file(run + "/summary.json");
  REQUIRE(file);
  return json::parse(file);
}

// The steps done of a run that stopped: saved as that step, and nothing else is there.
int require_stopped(const std::string& run, const std::string& reason, int before = num_steps) {
  const json summary = summary_of(run);
  CHECK(summary.at("stopped") == reason);
  const int steps = summary.at("steps");
  CHECK(steps < before);
  CHECK(steps == num_logged_steps(run));
  CHECK(step_folders(run) == std::vector<std::string>{step_folder(run, steps)});
  CHECK(summary.at("checkpoints").at("last_step") == steps);
  return steps;
}

void require_goes_on(const std::string& run, const Layout& layout) {
  const ProcessResult result = train(undisturbed().plan, run, layout, "--resume auto");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run) == undisturbed().outcome);
  CHECK(evaluations_of(run) == undisturbed().evaluations);
  CHECK(summary_of(run).at("stopped").is_null());
}

std::string arguments(const Layout& layout, const std::string& run) {
  return "train " + undisturbed().plan + layout.arguments() + " --run " + run + " --resume auto";
}

void wait_for_step(Job& job, const std::string& run, int step) {
  while (num_logged_steps(run) < step) {
    INFO(job.output());
    REQUIRE_FALSE(job.launcher_ended_within(1ms));
  }
}

void require_all_exit_with(Job& job, int num_ranks, int code) {
  REQUIRE(job.launcher_ended_within(30s));
  for (int rank = 0; rank < num_ranks; ++rank) {
    INFO(job.output());
    CHECK(contains(job.output(),
                   "rank " + std::to_string(rank) + " exits with " + std::to_string(code)));
  }
}

}  // namespace

TEST_CASE("a signal to one rank stops all ranks after the same step") {
  struct Case {
    Layout layout;
    int rank;
    int signal_number;
    std::string name;
    Layout then;
  };
  const std::vector<Case> cases = {{two, 0, SIGTERM, "SIGTERM", four},
                                   {two, 1, SIGUSR1, "SIGUSR1", {1, ""}},
                                   {two_stages, 1, SIGTERM, "SIGTERM", two},
                                   {four, 3, SIGTERM, "SIGTERM", two_stages},
                                   {four_stages, 2, SIGUSR1, "SIGUSR1", four}};
  for (const Case& one : cases) {
    const std::string run = fresh_run("stop-one-rank");
    Job job(one.layout.num_ranks, WEFT_PROGRAM, arguments(one.layout, run), run);
    job.find_ranks(one.layout.num_ranks);
    wait_for_step(job, run, 5);
    REQUIRE(job.signal_rank(one.rank, one.signal_number));
    require_all_exit_with(job, one.layout.num_ranks, 3);
    INFO(job.output());
    const int steps = require_stopped(run, one.name);
    const std::string said = "stopped at step " + std::to_string(steps) + " of " +
                             std::to_string(num_steps) + " for " + one.name;
    CHECK(contains(job.output(), said + ", saved " + step_folder(run, steps)));
    CHECK(contains(job.output(), " --run " + run + " --resume auto"));
    require_goes_on(run, one.then);
  }
}

TEST_CASE("SIGUSR1 to the launcher stops the run, and the launcher ends with 3") {
  for (const Layout& layout : {two, four}) {
    const std::string run = fresh_run("stop-launcher");
    Job job(layout.num_ranks, WEFT_PROGRAM, arguments(layout, run), run, {},
            Job::Launcher::as_it_is);
    job.find_ranks(layout.num_ranks);
    wait_for_step(job, run, 5);
    job.signal_launcher(SIGUSR1);
    REQUIRE(job.launcher_ended_within(30s));
    INFO(job.output());
    CHECK(job.launcher_exit_code() == 3);
    require_stopped(run, "SIGUSR1");
    require_goes_on(run, {3, "layout.dp=3 layout.zero=1"});
  }
}

// This mpirun passes it on after a second, kills what is left after another one and ends with a
// code of its own. Whether that was time enough to save or not, nothing of the result is lost.
TEST_CASE("SIGTERM to the launcher ends the run in seconds, and it goes on to the same bits") {
  const std::string run = fresh_run("stop-launcher-term");
  Job job(two.num_ranks, WEFT_PROGRAM, arguments(two, run), run, {}, Job::Launcher::as_it_is);
  job.find_ranks(two.num_ranks);
  wait_for_step(job, run, 5);
  job.signal_launcher(SIGTERM);
  REQUIRE(job.launcher_ended_within(30s));
  INFO(job.output());
  for (int rank = 0; rank < two.num_ranks; ++rank) CHECK(job.ended_within(rank, 10s));
  require_goes_on(run, four);
}

TEST_CASE("a second SIGTERM ends a rank at once, and with it the run") {
  const std::string run = fresh_run("stop-twice");
  Job job(two.num_ranks, WEFT_PROGRAM, arguments(two, run), run);
  job.find_ranks(two.num_ranks);
  wait_for_step(job, run, 5);
  // The other rank sleeps, so that this one cannot come to the step's end.
  REQUIRE(job.signal_rank(1, SIGSTOP));
  REQUIRE(job.signal_rank(0, SIGTERM));
  // Two senders of one request.
  REQUIRE(job.signal_rank(0, SIGTERM));
  CHECK_FALSE(job.ended_within(0, 1200ms));
  REQUIRE(job.signal_rank(0, SIGTERM));
  CHECK(job.ended_within(0, 1s));
  REQUIRE(job.signal_rank(1, SIGCONT));
  CHECK(job.ended_within(1, 10s));
  REQUIRE(job.launcher_ended_within(10s));
  INFO(job.output());
  CHECK(contains(job.output(), "rank 0 exits with 143"));
  CHECK(contains(job.output(), "rank 1 exits with 4"));
  CHECK(step_folders(run).empty());
  require_goes_on(run, four);
}

TEST_CASE("a time limit stops the run again and again, until it is through") {
  // More than two seconds of work on any machine.
  const SmallPlan small{.model = "vit", .hidden = 32, .steps = 2000, .every_steps = 0, .keep = 1};
  const std::string plan = write_plan(small, "stop-limit") + " --set eval.every_epochs=10";
  const std::string reference = fresh_run("stop-limit-reference");
  REQUIRE(train(plan, reference).exit_code == 0);
  CHECK(summary_of(reference).at("stopped").is_null());
  const std::vector<Layout> in_turn = {two, four_stages, {1, ""}, four, two_stages};
  const std::string run = fresh_run("stop-limit");
  int steps = 0;
  for (std::size_t num_stops = 0;; ++num_stops) {
    const ProcessResult result = train(plan, run, in_turn[num_stops % in_turn.size()],
                                       "--resume auto --set run.time_limit=2s");
    INFO(result.text);
    if (result.exit_code == 0) break;
    REQUIRE(result.exit_code == 3);
    CHECK(result.seconds < 5.0);  // the launcher's time, too, on a machine that does much else
    const int now = require_stopped(run, "time limit", small.steps);
    REQUIRE(now > steps);
    steps = now;
  }
  CHECK(steps > 0);
  CHECK(outcome_of(run) == outcome_of(reference));
  CHECK(evaluations_of(run) == evaluations_of(reference));
  CHECK(evaluations_of(run).size() == 10);
}

TEST_CASE("a signal while a checkpoint is saved: it is finished, then the run stops") {
  const SmallPlan small{.model = "mlp", .hidden = 32, .steps = 40, .every_steps = 4};
  const std::string plan = write_plan(small, "stop-save");
  const std::string reference = fresh_run("stop-save-reference");
  const std::string log = reference + ".operations";
  REQUIRE(train(plan, reference, two, {}, file_faults(reference, log)).exit_code == 0);
  int first = -1, last = -1;  // operations of rank 0 up to the first checkpoint's name
  for (const FileOperation& one : read_operations(log)) {
    if (one.rank != 0 || contains(one.path, ".lease")) continue;
    if (first < 0 && one.name == "open") first = one.index;
    if (has_commit({one})) last = one.index;
    if (last >= 0) break;
  }
  REQUIRE(first >= 0);
  REQUIRE(last > first);
  for (const int at : {first, (first + last) / 2, last}) {
    const std::string run = fresh_run("stop-save");
    const ProcessResult stopped =
        train(plan, run, two, {}, file_faults(run, run + ".operations", 0, at, "term"));
    INFO("at operation " << at << "\n" << stopped.text);
    CHECK(stopped.exit_code == 3);
    const json summary = summary_of(run);
    CHECK(summary.at("stopped") == "SIGTERM");
    CHECK(summary.at("steps") == 5);
    CHECK(valid_step_folders(run) ==
          std::vector<std::string>{step_folder(run, 4), step_folder(run, 5)});
    REQUIRE(train(plan, run, four, "--resume auto").exit_code == 0);
    CHECK(outcome_of(run) == outcome_of(reference));
  }
}

TEST_CASE("a stop that cannot be saved is no stop to requeue") {
  const std::string limit = " --set run.time_limit=1s";
  SECTION("the disk is full") {
    const std::string run = fresh_run("stop-full");
    // After the lease: the first file of the first checkpoint.
    const ProcessResult result = train(undisturbed().plan, run, two, limit,
                                       file_faults(run, run + ".operations", 0, 6, "enospc-on"));
    INFO(result.text);
    CHECK(result.exit_code == 1);
    CHECK(contains(result.text, "ALARM"));
    CHECK(contains(result.text, "for time limit; this step could not be saved (see above)"));
    CHECK(summary_of(run).at("stopped") == "time limit");
    CHECK(step_folders(run).empty());
  }
  SECTION("the plan saves nothing") {
    const std::string run = fresh_run("stop-none");
    const ProcessResult result =
        train(undisturbed().plan, run, two, limit + " --set checkpoint.at_end=false");
    INFO(result.text);
    CHECK(result.exit_code == 1);
    CHECK(contains(result.text, "for time limit; NOTHING IS SAVED"));
    CHECK(step_folders(run).empty());
  }
}
