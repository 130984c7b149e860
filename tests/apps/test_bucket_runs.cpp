// The program on texts in length buckets: what a run records agrees with its plan, on any layout.
#include <catch2/catch.hpp>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

using namespace weft::test;

TEST_CASE("check --run knows the samples of a run in length buckets") {
  const std::string folder = fresh_folder("bucket-runs"), data = folder + "/data";
  REQUIRE(run_weft("data make ag_news " + data + " --rows 900 --seed 3").exit_code == 0);
  const std::string plan = WEFT_PLANS "/ag-news-encoder.toml --data " + data +
                           " --set model.hidden=48 --set model.layers=2 --set batch.global=16"
                           " --set batch.micro=2 --set task.tokens=24 --set task.vocabulary=203"
                           " --set task.split.train=400 --set task.split.validation=20"
                           " --set run.epochs=2 ";
  const auto buckets = [](const std::string& list) {
    return " --set 'task.length_buckets=" + list + "' ";
  };
  std::set<std::string> states;
  std::set<std::vector<int>> tokens_of_runs;
  int num_runs = 0;
  for (const std::string layout : {"", "--set layout.dp=2 --set layout.pp=2 ",
                                   "--set layout.tp=2 --set layout.dp=2 --set layout.zero=1 "}) {
    const std::string run = folder + "/run-" + std::to_string(num_runs);
    const std::string all = plan + layout + buckets("[8,12,16,24]");
    const ProcessResult trained =
        run_weft_ranks(layout.empty() ? 1 : 4, "train " + all + " --json --run " + run);
    INFO(trained.text);
    REQUIRE(trained.exit_code == 0);
    std::ifstream steps(run + "/run.jsonl");
    std::vector<int> tokens;
    for (std::string line; std::getline(steps, line);)
      tokens.push_back(nlohmann::json::parse(line).at("tokens").get<int>());
    REQUIRE(tokens.size() == 50);
    CHECK(std::set<int>(tokens.begin(), tokens.end()).size() > 1);
    for (const int count : tokens) CHECK((count == 8 || count == 12 || count == 16 || count == 24));
    tokens_of_runs.insert(tokens);
    states.insert(trained.json().at("state_hash").get<std::string>());
    ++num_runs;
    const ProcessResult same = run_weft("check " + all + " --json --run " + run);
    INFO(same.text);
    CHECK(same.exit_code == 0);
    CHECK(same.json().at("agrees") == true);
    // Other buckets are another key and the same samples; none are other samples, too.
    const auto differing = [&](const std::string& list) {
      const ProcessResult other =
          run_weft("check " + plan + layout + buckets(list) + " --json --run " + run);
      CHECK(other.exit_code == 1);
      std::set<std::string> what;
      const nlohmann::json report = other.json();
      for (const auto& row : report.at("compared")) {
        if (!row.at("agrees").get<bool>()) what.insert(row.at("what").get<std::string>());
      }
      return what;
    };
    CHECK(differing("[16,24]") == std::set<std::string>{"task.length_buckets"});
    std::set<std::string> all_replicas{"task.length_buckets",
                                       "replica 0: samples of steps 1 to 50"};
    if (!layout.empty()) all_replicas.insert("replica 1: samples of steps 1 to 50");
    CHECK(differing("\"none\"") == all_replicas);
  }
  CHECK(states.size() == 1);
  CHECK(tokens_of_runs.size() == 1);
  const ProcessResult wrong = run_weft("check " + plan + buckets("[12,8]"));
  CHECK(wrong.exit_code == 2);
  CHECK(wrong.text.find("task.length_buckets: expected lengths that rise and end with task.tokens "
                        "24; found [12, 8]; nearest legal: task.length_buckets = [8, 12, 24]") !=
        std::string::npos);
}
