// The run folder: what is written, and that an existing run is safe.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "io/run_log.hpp"
#include "tests/io/system_calls.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using nlohmann::json;

namespace fs = std::filesystem;

namespace {

StepRecord record_of(index_t step) {
  StepRecord record;
  record.step = step;
  record.loss = 1.0 / static_cast<double>(step);
  return record;
}

// The lines of steps first..last.
std::string step_lines(index_t first, index_t last) {
  std::string text;
  for (index_t step = first; step <= last; ++step) text += json_line(record_of(step)) + "\n";
  return text;
}

std::string evaluation_line(index_t step) {
  return "{\"step\":" + std::to_string(step) + ",\"split\":\"validation\"}";
}

// A run of six steps, evaluated after each second one, that came to its end.
void write_run(const std::string& folder) {
  RunLog log(folder, "plan of then");
  log.write_split("{}");
  for (index_t step = 1; step <= 6; ++step) {
    log.add_step(record_of(step));
    if (step % 2 == 0) log.add_evaluation(evaluation_line(step));
  }
  log.write_summary(R"({"steps":6})");
}

// All files of a folder by name, with their bytes.
std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    files[entry.path().filename()] = read_all(entry.path());
  }
  return files;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

}  // namespace

TEST_CASE("a run folder holds plan, steps, split, evaluations and summary", "[run_log]") {
  const TemporaryFolder folder;
  const std::string run = folder / "runs/first";
  RunLog log(run, "[task]\n");
  log.write_split(R"({"seed":7})");
  for (index_t step = 1; step <= 3; ++step) {
    StepRecord record;
    record.step = step;
    record.loss = 0.1 * static_cast<double>(step);
    record.more = {{"forward_ms", 1.5}};
    log.add_step(record);
    // Each line is there at once.
    const std::string lines = read_all(run + "/run.jsonl");
    CHECK(std::count(lines.begin(), lines.end(), '\n') == step);
  }
  log.add_evaluation(R"({"epoch":0})");
  log.add_evaluation(R"({"epoch":1})");
  log.write_summary(R"({"steps":3})");
  CHECK(read_all(run + "/plan.toml") == "[task]\n");
  CHECK(read_all(run + "/split.json") == "{\"seed\":7}\n");
  CHECK(read_all(run + "/eval.jsonl") == "{\"epoch\":0}\n{\"epoch\":1}\n");
  CHECK(read_all(run + "/summary.json") == "{\"steps\":3}\n");
  std::istringstream lines(read_all(run + "/run.jsonl"));
  index_t step = 0;
  for (std::string line; std::getline(lines, line);) {
    const json record = json::parse(line);
    CHECK(record["step"] == ++step);
    CHECK(record["loss"].get<double>() == 0.1 * static_cast<double>(step));
    CHECK(record["forward_ms"] == 1.5);
  }
  CHECK(step == 3);
}

TEST_CASE("losses read back to their bits", "[run_log]") {
  for (double loss : {2.302585092994046, 1.0, 0.1, 1e-300, 5e-324, 1.7976931348623157e308, -0.0}) {
    StepRecord record;
    record.loss = loss;
    const json line = json::parse(json_line(record));
    CHECK(std::signbit(line["loss"].get<double>()) == std::signbit(loss));
    CHECK(line["loss"].get<double>() == loss);
  }
  StepRecord record;
  record.loss = 1.0;
  CHECK(json::parse(json_line(record))["loss_bits"] == "3ff0000000000000");
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.grad_norm = std::numeric_limits<double>::infinity();
  const json line = json::parse(json_line(record));
  CHECK(line["loss"].is_null());
  CHECK(line["grad_norm"].is_null());
  CHECK(line["loss_bits"].get<std::string>().starts_with("7ff8"));
}

TEST_CASE("a folder that holds a run is refused and left alone", "[run_log]") {
  const std::string name = GENERATE("plan.toml", "run.jsonl", "summary.json", "checkpoints");
  const TemporaryFolder folder;
  write_all(folder / name, "mine");
  const auto error = error_of([&] { RunLog(folder.path(), "plan"); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::usage);
  CHECK(says(error, folder.path()));
  CHECK(says(error, name));
  CHECK(says(error, "--run"));
  CHECK(says(error, "--resume"));
  CHECK(read_all(folder / name) == "mine");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("folders that can and cannot be a run's", "[run_log]") {
  const TemporaryFolder folder;
  write_all(folder / "job.log", "not a run");  // batch systems put their output there
  CHECK_NOTHROW(RunLog(folder.path(), "plan"));
  write_all(folder / "file", "x");
  CHECK(error_of([&] { RunLog(folder / "file", "plan"); })->code() == ExitCode::usage);
  CHECK(error_of([&] { RunLog("", "plan"); })->code() == ExitCode::usage);
  CHECK(says(error_of([&] { RunLog("/proc/weft/run", "plan"); }), "cannot create the folder"));
}

TEST_CASE("the default folder has the plan's name and the time", "[run_log]") {
  const std::string name = default_run_folder("mlp-small");
  CHECK(name.starts_with("runs/mlp-small-20"));
  CHECK(name.size() == std::string("runs/mlp-small-20251129-213400").size());
}

TEST_CASE("a resumed run goes on after its step, with the files cut back to it", "[run_log]") {
  const TemporaryFolder folder;
  write_run(folder / "run");
  {
    RunLog log = RunLog::resume(folder / "run", "plan of then", 4);
    CHECK(log.folder() == folder / "run");
    CHECK(read_all(folder / "run/run.jsonl") == step_lines(1, 4));
    CHECK(read_all(folder / "run/eval.jsonl") ==
          evaluation_line(2) + "\n" + evaluation_line(4) + "\n");
    // Of steps that are no longer there.
    CHECK(!fs::exists(folder / "run/summary.json"));
    log.add_event(R"({"resumed_from_step":4})");
    log.add_step(record_of(5));
    log.add_step(record_of(6));
    log.add_evaluation(evaluation_line(6));
    log.write_summary(R"({"steps":6})");
  }
  CHECK(read_all(folder / "run/run.jsonl") == step_lines(1, 6));
  CHECK(read_all(folder / "run/eval.jsonl").ends_with(evaluation_line(6) + "\n"));
  // The same plan: no second copy of it.
  CHECK(names_in(folder / "run") == std::set<std::string>{"plan.toml", "run.jsonl", "eval.jsonl",
                                                          "split.json", "events.jsonl",
                                                          "summary.json"});
  // Events outlast a resume at any step, even a new start.
  RunLog::resume(folder / "run", "plan of then", 0).add_event(R"({"resumed_from_step":0})");
  CHECK(read_all(folder / "run/events.jsonl") ==
        "{\"resumed_from_step\":4}\n{\"resumed_from_step\":0}\n");
  CHECK(read_all(folder / "run/run.jsonl").empty());
  CHECK(read_all(folder / "run/eval.jsonl").empty());
  CHECK(read_all(folder / "run/split.json") == "{}\n");
}

TEST_CASE("the summary of a former end goes once the run goes on", "[run_log]") {
  const TemporaryFolder folder;
  write_run(folder / "run");
  RunLog log = RunLog::resume(folder / "run", "plan of then", 6);
  CHECK(read_all(folder / "run/summary.json") == "{\"steps\":6}\n");  // nothing new yet
  log.add_step(record_of(7));
  CHECK(!fs::exists(folder / "run/summary.json"));
  log.write_summary(R"({"steps":8})");
  log.add_step(record_of(8));
  CHECK(read_all(folder / "run/summary.json") == "{\"steps\":8}\n");
}

TEST_CASE("no plan of a run is lost", "[run_log]") {
  const TemporaryFolder folder;
  write_run(folder / "run");
  const auto resume = [&](const char* plan) { RunLog::resume(folder / "run", plan, 2); };
  const auto plans = [&] {
    std::string all;
    for (const char* name : {"plan-1.toml", "plan-2.toml", "plan-3.toml", "plan.toml"}) {
      all += read_all(folder / ("run/" + std::string(name))) + ";";
    }
    return all;
  };
  resume("b");
  CHECK(plans() == "plan of then;;;b;");
  resume("b");
  CHECK(plans() == "plan of then;;;b;");
  resume("plan of then");
  CHECK(plans() == "plan of then;b;;plan of then;");
  // Killed after the copy and before the new plan: the copy is not made twice.
  write_all(folder / "run/plan-3.toml", "plan of then");
  resume("c");
  CHECK(plans() == "plan of then;b;plan of then;c;");
  CHECK(!fs::exists(folder / "run/plan-4.toml"));
}

TEST_CASE("what a kill leaves behind is put right", "[run_log]") {
  const TemporaryFolder folder;
  write_run(folder / "run");
  const auto append = [&](const char* name, const std::string& text) {
    write_all(folder / name, read_all(folder / name) + text);
  };
  append("run/run.jsonl", R"({"step":7,"epoch":0,"lo)");
  append("run/events.jsonl", R"({"resumed_fr)");
  const std::string state_files = "run/checkpoints";
  fs::create_directory(folder / state_files);
  write_all(folder / "run/checkpoints/run.jsonl.tmp-1", "of others");
  for (const char* name :
       {"run.jsonl", "eval.jsonl", "split.json", "summary.json", "plan.toml", "plan-1.toml"}) {
    write_all(folder / ("run/" + std::string(name) + ".tmp-4711"), "half");
  }
  write_all(folder / "run/job.log.tmp-4711", "of others");
  RunLog log = RunLog::resume(folder / "run", "plan of then", 6);
  CHECK(read_all(folder / "run/run.jsonl") == step_lines(1, 6));
  CHECK(names_in(folder / "run") == std::set<std::string>{"plan.toml", "run.jsonl", "eval.jsonl",
                                                          "split.json", "events.jsonl",
                                                          "checkpoints", "job.log.tmp-4711"});
  CHECK(fs::exists(folder / "run/checkpoints/run.jsonl.tmp-1"));
  log.add_event("{}");
  CHECK(read_all(folder / "run/events.jsonl") == "{\"resumed_fr\n{}\n");
  // Killed with only one of two files cut: the next call cuts the other one.
  write_all(folder / "run/run.jsonl", step_lines(1, 6));
  write_all(folder / "run/eval.jsonl", evaluation_line(2) + "\n");
  RunLog::resume(folder / "run", "plan of then", 3);
  CHECK(read_all(folder / "run/run.jsonl") == step_lines(1, 3));
  CHECK(read_all(folder / "run/eval.jsonl") == evaluation_line(2) + "\n");
}

TEST_CASE("a resume that is killed at any moment is mended by the next", "[run_log]") {
  const TemporaryFolder folder;
  const auto resume = [&](const std::string& name) { RunLog::resume(name, "plan of now", 3); };
  write_run(folder / "whole");
  resume(folder / "whole");
  const std::map<std::string, std::string> right = files_in(folder / "whole");
  REQUIRE(right.contains("plan-1.toml"));
  index_t num_kills = 0, num_halves = 0;  // halves: neither as before nor done
  for (bool is_done = false; !is_done;) {
    const std::string run = folder / ("run-" + std::to_string(num_kills));
    write_run(run);
    const std::map<std::string, std::string> before = files_in(run);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const SystemFault fault(Call::any, SystemFault::die, static_cast<int>(num_kills));
      resume(run);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    is_done = WEXITSTATUS(status) == 0;
    INFO("killed before its system call " << num_kills);
    if (!is_done) {
      REQUIRE(WEXITSTATUS(status) == SystemFault::exit_status);
      const std::map<std::string, std::string> after = files_in(run);
      num_halves += after != before && after != right ? 1 : 0;
      ++num_kills;
      resume(run);
    }
    CHECK(files_in(run) == right);
  }
  // Four files take the place of old ones: each is made, synced and renamed, its folder synced.
  CHECK(num_kills >= 4 * 4);
  CHECK(num_halves >= 4 * 3);
}

TEST_CASE("folders in which a run can be resumed, and cannot", "[run_log]") {
  const TemporaryFolder folder;
  const auto resume = [&](const std::string& name, index_t num_done) {
    RunLog::resume(folder / name, "plan", num_done).add_step(record_of(num_done + 1));
    CHECK(read_all(folder / (name + "/plan.toml")) == "plan");
    const std::string lines = read_all(folder / (name + "/run.jsonl"));
    CHECK(lines.ends_with(step_lines(num_done + 1, num_done + 1)));
  };
  resume("new/deep", 0);
  fs::create_directories(folder / "empty");
  resume("empty", 0);
  fs::create_directories(folder / "only-plan");  // killed before the first line
  write_all(folder / "only-plan/plan.toml", "plan");
  resume("only-plan", 0);
  fs::create_directories(folder / "only-lines");  // killed before the plan
  write_all(folder / "only-lines/run.jsonl", "");
  resume("only-lines", 0);
  fs::create_directories(folder / "only-state/checkpoints");
  resume("only-state", 9);

  const auto refusal = [&](const std::string& name) {
    const auto error = error_of([&] { RunLog::resume(name, "plan", 0); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::usage);
    return std::string(error->what());
  };
  CHECK(refusal("").find("--run: expected the name of a folder") != std::string::npos);
  write_all(folder / "file", "x");
  CHECK(refusal(folder / "file").find("is not a folder") != std::string::npos);
  fs::create_directories(folder / "odd/run.jsonl");
  write_all(folder / "odd/plan.toml", "mine");
  CHECK(refusal(folder / "odd").find("odd/run.jsonl: expected a file") != std::string::npos);
  CHECK(read_all(folder / "odd/plan.toml") == "mine");
}
