// The job scripts of apps/batch, each really run: a run that is cut into jobs and put back into the
// queue ends with the bits of one job. Slurm's commands are stand-ins: srun starts the launcher,
// scontrol writes down what it was asked.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
namespace fs = std::filesystem;

const std::string scripts = WEFT_BATCH_SCRIPTS "/";
const std::string launch = WEFT_LAUNCHER " 2";
const std::string limit = " --set run.time_limit=2s";

struct Example {
  std::string plan;  // "PLAN", and in `data` the rest of the command
  std::string data;
  Outcome outcome;
};

const Example& example() {
  static const Example found = [] {
    const SmallPlan small{.model = "vit", .hidden = 32, .steps = 2000, .every_steps = 0};
    const std::string text = write_plan(small, "batch");
    const std::string run = fresh_run("batch-reference");
    const ProcessResult result = train(text, run);
    INFO(result.text);
    REQUIRE(result.exit_code == 0);
    const auto space = text.find(' ');
    return Example{text.substr(0, space), text.substr(space), outcome_of(run)};
  }();
  return found;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_script(const std::string& path, const std::string& text) {
  std::ofstream(path) << "#!/bin/sh\n" << text;
  fs::permissions(path, fs::perms::owner_all);
}

// A cluster: where its commands lie, and what they were asked.
struct Cluster {
  std::string folder = fresh_folder("batch-cluster");
  std::string log = folder + "/log";

  Cluster() {
    write_script(folder + "/srun",
                 "echo \"srun $1\" >>" + log + "\nshift\nexec " + launch + " \"$@\"\n");
    write_script(folder + "/scontrol", "echo \"scontrol $*\" >>" + log + "\n");
  }
  std::string job(const std::string& script, const std::string& run, const std::string& more) {
    fs::remove(log);
    return "PATH=" + folder + ":$PATH SLURM_JOB_ID=7 WEFT=" WEFT_PROGRAM " MPIRUN='" + launch +
           "' bash " + scripts + script + " " + example().plan + " " + run + example().data +
           " --set layout.tp=2" + more;
  }
  ProcessResult submit(const std::string& script, const std::string& run, const std::string& more) {
    return run_shell(job(script, run, more));
  }
  bool has_requeued() const { return contains(read_file(log), "scontrol requeue 7\n"); }
};

std::string stopped_for(const std::string& run) {
  const auto summary = nlohmann::json::parse(read_file(run + "/summary.json"));
  return summary.at("stopped").is_null() ? "" : summary.at("stopped").get<std::string>();
}

// A command that is sent a signal once its ranks have begun for the `start`-th time in this folder,
// half a minute at most.
std::string signalled(const std::string& command, const std::string& name, const std::string& run,
                      int start) {
  return "( " + command + " & job=$!; for i in $(seq 1500); do sleep 0.02; test \"$(grep -c " +
         "resumed_from_step " + run + "/events.jsonl 2>/dev/null)\" = " + std::to_string(start) +
         " && break; done; kill -s " + name + " $job; wait $job )";
}

}  // namespace

TEST_CASE("every script is one for bash") {
  int num_scripts = 0;
  for (const auto& entry : fs::directory_iterator(scripts)) {
    if (entry.path().extension() == ".md") continue;
    const ProcessResult result = run_shell("bash -n " + entry.path().string());
    INFO(entry.path() << result.text);
    CHECK(result.exit_code == 0);
    CHECK(result.text.empty());
    ++num_scripts;
  }
  CHECK(num_scripts == 3);
}

TEST_CASE("Slurm's jobs go back into the queue until the run is through") {
  for (const std::string script : {"weft.sbatch", "weft-mpirun.sbatch"}) {
    Cluster cluster;
    const std::string run = fresh_run("batch-slurm");
    int num_requeued = 0;
    for (;; ++num_requeued) {
      const ProcessResult job = cluster.submit(script, run, limit);
      INFO(script << "\n" << job.text);
      REQUIRE(job.exit_code == 0);
      if (script == "weft.sbatch") CHECK(contains(read_file(cluster.log), "srun --mpi=pmix\n"));
      if (!cluster.has_requeued()) break;
      CHECK(stopped_for(run) == "time limit");
    }
    CHECK(num_requeued >= 1);
    CHECK(outcome_of(run) == example().outcome);
  }
}

TEST_CASE("a job that mpirun runs hands its signal on; one that Slurm ends is not requeued") {
  Cluster cluster;
  const std::string run = fresh_run("batch-signals");
  const ProcessResult warned =
      run_shell(signalled(cluster.job("weft-mpirun.sbatch", run, ""), "USR1", run, 1));
  INFO(warned.text);
  CHECK(stopped_for(run) == "SIGUSR1");
  CHECK(cluster.has_requeued());
  const ProcessResult ended =
      run_shell(signalled(cluster.job("weft-mpirun.sbatch", run, ""), "TERM", run, 2));
  INFO(ended.text);
  CHECK(ended.exit_code == 3);
  CHECK(stopped_for(run) == "SIGUSR1");
  CHECK_FALSE(cluster.has_requeued());
  REQUIRE(cluster.submit("weft-mpirun.sbatch", run, "").exit_code == 0);
  CHECK(outcome_of(run) == example().outcome);
}

// Slurm 22.05 does so on a node that failed and came back.
TEST_CASE("srun's 0 without ranks is not the end of the run") {
  Cluster cluster;
  const std::string run = fresh_run("batch-no-ranks");
  const auto start_ranks_at = [&](int attempt) {
    write_script(cluster.folder + "/srun", "echo srun >>" + cluster.log + "\ntest $(grep -c srun " +
                                               cluster.log + ") -ge " + std::to_string(attempt) +
                                               " || exit 0\nshift\nexec " + launch + " \"$@\"\n");
  };
  start_ranks_at(9);
  const ProcessResult never = cluster.submit("weft.sbatch", run, "");
  INFO(never.text);
  CHECK(never.exit_code == 1);
  CHECK(read_file(cluster.log) == "srun\nsrun\nsrun\n");
  start_ranks_at(2);
  const ProcessResult second = cluster.submit("weft.sbatch", run, "");
  INFO(second.text);
  REQUIRE(second.exit_code == 0);
  CHECK(read_file(cluster.log) == "srun\nsrun\n");
  CHECK(outcome_of(run) == example().outcome);
}

TEST_CASE("a job that fails is not requeued") {
  Cluster cluster;
  for (const std::string script : {"weft.sbatch", "weft-mpirun.sbatch"}) {
    const ProcessResult job =
        cluster.submit(script, fresh_run("batch-failed"), " --set model.heads=5");
    INFO(job.text);
    CHECK(job.exit_code == 2);
    CHECK_FALSE(cluster.has_requeued());
  }
}

TEST_CASE("loop.sh starts the command until it is through, or is asked to stop") {
  const std::string run = fresh_run("batch-loop");
  const std::string loop = scripts + "loop.sh " + launch + " " WEFT_PROGRAM " train " +
                           example().plan + example().data + " --set layout.dp=2 --run " + run +
                           " --resume auto" + limit;
  const ProcessResult asked = run_shell(signalled(loop, "TERM", run, 1));
  INFO(asked.text);
  CHECK(asked.exit_code == 3);
  CHECK(stopped_for(run) == "SIGUSR1");
  const ProcessResult result = run_shell(loop);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.text, "loop.sh: stopped and saved; once more"));
  CHECK(outcome_of(run) == example().outcome);
}

TEST_CASE("loop.sh refuses a command that would never come to an end") {
  for (const std::string more : {"", " --run runs/a", " --resume auto", " --runs a --resumed"}) {
    const ProcessResult result = run_shell(scripts + "loop.sh false" + more);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.text, "expected a command with --run DIR and --resume auto"));
  }
  CHECK(run_shell(scripts + "loop.sh false --run=a --resume=auto").exit_code == 1);
}
