// `weft async` as a user starts it: its result is that of its record, and with one worker that of
// `weft train`.
#include <catch2/catch.hpp>

#include <fstream>
#include <set>
#include <string>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
using Json = nlohmann::json;

std::string plan(const std::string& model) {
  return write_plan({.model = model, .steps = 12, .every_steps = 100}, "async-" + model);
}

Json run_async(const std::string& plan, const std::string& run, int num_ranks,
               const std::string& more = "") {
  const ProcessResult result =
      run_weft_ranks(num_ranks, "async " + plan + " --json --run " + run +
                                    " --set layout.dp=" + std::to_string(num_ranks) + " " + more);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  return result.json();
}

std::vector<Json> lines_of(const std::string& run) {
  std::ifstream file(run + "/run.jsonl");
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("with one worker it is training, bit by bit") {
  for (const std::string model : {"mlp", "vit"}) {
    const std::string trained = fresh_run("async-train-" + model);
    REQUIRE(train(plan(model), trained).exit_code == 0);
    const Json summary = run_async(plan(model), fresh_run("async-one-" + model), 1);
    CHECK(summary.at("state_hash") == outcome_of(trained).state_hash);
    CHECK(summary.at("loss_hash") == outcome_of(trained).loss_hash);
    CHECK(summary.at("staleness").at("largest") == 0);
  }
}

TEST_CASE("a run is marked, its bound holds, and its record repeats it on one rank") {
  for (const std::string model : {"mlp", "vit"}) {
    const std::string run = fresh_run("async-" + model);
    const Json summary = run_async(plan(model), run, 4, "--max-staleness 5 --delay 2:compute=15");
    CHECK(summary.at("objective").get<std::string>().find("asynchronous") == 0);
    const std::vector<Json> lines = lines_of(run);
    REQUIRE(lines.size() == 12 * 4);
    CHECK(summary.at("updates") == lines.size());
    std::set<double> batches;
    for (std::size_t version = 0; version < lines.size(); ++version) {
      const double staleness = lines[version].at("staleness").get<double>();
      CHECK(staleness ==
            static_cast<double>(version) - lines[version].at("based_on").get<double>());
      CHECK(staleness <= 5);
      batches.insert(lines[version].at("batch").get<double>());
    }
    CHECK(batches.size() == lines.size());
    REQUIRE(summary.at("ranks").size() == 4);
    int updates = 0;
    for (int rank = 0; rank < 4; ++rank) {
      const Json& figures = summary.at("ranks").at(rank);
      CHECK(figures.at("dp") == rank);
      double sum = 0.0;
      for (const auto& [name, ms] : figures.at("ms").items()) sum += ms.get<double>();
      CHECK(sum == Approx(figures.at("steps_ms").get<double>()));
      updates += summary.at("workers").at(rank).at("updates").get<int>();
    }
    CHECK(updates == 12 * 4);
    const ProcessResult report = run_weft("report " + run + " --markdown");
    INFO(report.text);
    REQUIRE(report.exit_code == 0);
    CHECK(report.out.find("asynchronous updates, staleness at most 5") != std::string::npos);
    const ProcessResult same =
        run_weft("async " + plan(model) + " --set layout.dp=4 --replay " + run + " --json");
    INFO(same.text);
    CHECK(same.exit_code == 0);
    CHECK(same.json().at("same_bits") == true);
  }
}

TEST_CASE("a record that was changed is told apart, at the update; another plan is refused") {
  const std::string run = fresh_run("async-other");
  run_async(plan("mlp"), run, 2);
  const std::string replay =
      "async " + plan("mlp") + " --set layout.dp=2 --replay " + run + " --json ";
  for (const char* other : {"--set numerics.seed=99", "--set layout.dp=1",
                            "--set numerics.mode=fast", "--max-staleness 9"}) {
    const ProcessResult refused = run_weft(replay + other);
    INFO(other << ": " << refused.text);
    CHECK(refused.exit_code == 2);
    CHECK(refused.text.find("--replay: expected") != std::string::npos);
  }
  std::vector<Json> lines = lines_of(run);
  std::swap(lines[6]["batch"], lines[7]["batch"]);
  {
    std::ofstream file(run + "/run.jsonl");
    for (const Json& line : lines) file << line.dump() << "\n";
  }
  const ProcessResult changed = run_weft(replay);
  INFO(changed.text);
  CHECK(changed.exit_code == 1);
  CHECK(changed.json().at("same_bits") == false);
  CHECK(changed.text.find("update 7 (worker") != std::string::npos);
}

TEST_CASE("what an asynchronous run cannot do is refused, and nothing is lost") {
  const std::string run = fresh_run("async-refused");
  run_async(plan("mlp"), run, 2);
  const auto refusal = [&](int num_ranks, const std::string& arguments, int exit_code = 2) {
    const ProcessResult result = run_weft_ranks(num_ranks, arguments);
    CHECK(result.exit_code == exit_code);
    return result.text;
  };
  const std::string before = Json(lines_of(run)).dump();
  CHECK(refusal(1, "train " + plan("mlp") + " --run " + run + " --resume auto")
            .find("is an asynchronous run, which cannot be resumed") != std::string::npos);
  CHECK(refusal(1, "check " + plan("mlp") + " --set layout.dp=2 --run " + run)
            .find("is an asynchronous run, whose workers") != std::string::npos);
  CHECK(refusal(2, "async " + plan("mlp") + " --set layout.dp=2 --run " + run)
            .find("already holds a run") != std::string::npos);
  CHECK(refusal(2, "async " + plan("mlp") + " --set layout.tp=2").find("layout.tp: expected 1") !=
        std::string::npos);
  CHECK(refusal(2, "async " + plan("mlp") + " --set layout.dp=2 --max-staleness 0")
            .find("--max-staleness: expected 1 or more with 2 workers") != std::string::npos);
  CHECK(refusal(2, "async " + plan("mlp") + " --set layout.dp=2 --replay " + run)
            .find("--replay: expected one rank; found 2") != std::string::npos);
  CHECK(Json(lines_of(run)).dump() == before);
  const std::string trained = fresh_run("async-no-record");
  REQUIRE(train(plan("mlp"), trained).exit_code == 0);
  CHECK(refusal(1, "async " + plan("mlp") + " --replay " + trained, 5)
            .find("run.jsonl:1: expected an update of an asynchronous run") != std::string::npos);
}
