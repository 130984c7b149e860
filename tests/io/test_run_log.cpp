// The run folder: what is written, and that an existing run is safe.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "io/run_log.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using nlohmann::json;

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
