// `weft eval` on every layout: the figures that the run itself wrote, to the last bit, for both
// splits, also where replicas have nothing to evaluate.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/weft_process.hpp"

namespace {

using nlohmann::json;
using weft::test::ProcessResult;

// 30 samples to validate with and 80 to test with, in microbatches of 4: eight, of which twelve
// replicas have none or one, and twenty.
std::string plan() {
  const std::string folder = weft::test::test_folder() + "/eval-cifar10";
  if (!std::filesystem::exists(folder + "/test_batch.bin")) {
    const ProcessResult made = weft::test::run_weft("data make cifar10 " + folder + " --rows 80");
    REQUIRE(made.exit_code == 0);
  }
  return WEFT_PLANS "/cifar10-mlp-12.toml --data " + folder +
         " --set 'task.split={train=320,validation=30,seed=7}' --set run.steps=4";
}

struct Layout {
  int tp, dp, pp;
  std::string more = {};
};

json eval(const std::string& run, const std::string& split, const Layout& layout) {
  const ProcessResult result =
      weft::test::run_weft_ranks(layout.tp * layout.dp * layout.pp,
                                 "eval " + plan() + " --json --checkpoint " + run + " --split " +
                                     split + " --set layout.tp=" + std::to_string(layout.tp) +
                                     " --set layout.dp=" + std::to_string(layout.dp) +
                                     " --set layout.pp=" + std::to_string(layout.pp) + layout.more);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  return result.json();
}

json last_line(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) last = line;
  REQUIRE_FALSE(last.empty());
  return json::parse(last);
}

const std::vector<Layout> layouts = {
    {1, 1, 1},
    {2, 1, 1},
    {1, 3, 1},
    {1, 2, 2, " --set layout.zero=1 --set layout.schedule=gpipe"},
    {5, 1, 1, " --set layout.sequence_parallel=true"},
    {3, 2, 1, " --set layout.order=dp,tp,pp"},
    {1, 7, 1},
    {2, 2, 2, " --set comm.transport=mpi"},
    {3, 3, 1},
    {5, 2, 1, " --set layout.zero=1 --set layout.sequence_parallel=true"},
    {1, 11, 1},
    {12, 1, 1},
    {1, 12, 1},
    {2, 3, 2, " --set layout.order=pp,dp,tp"},
};

}  // namespace

TEST_CASE("a checkpoint's figures on 1 to 12 ranks are those of the run that wrote it") {
  const std::string run = weft::test::fresh_folder("eval-run") + "/it";
  const ProcessResult trained = weft::test::run_weft_ranks(
      4, "train " + plan() + " --json --run " + run + " --set layout.tp=2 --set layout.dp=2");
  INFO(trained.text);
  REQUIRE(trained.exit_code == 0);
  const json line = last_line(run + "/eval.jsonl");
  const json summary = trained.json();
  CHECK(summary.at("test_split_uses") == 0);

  std::string test_metrics;
  int num_uses = 0;
  for (const Layout& layout : layouts) {
    INFO("tp " << layout.tp << " dp " << layout.dp << " pp " << layout.pp << layout.more);
    const json validation = eval(run, "validation", layout);
    CHECK(validation.at("step") == 4);
    CHECK(validation.at("samples") == 30);
    REQUIRE(validation.at("metrics").size() == 7);
    for (const auto& [name, value] : validation.at("metrics").items()) {
      INFO(name);
      CHECK(value.dump() == line.at(name).dump());
      CHECK(value.dump() == summary.at("metrics").at("validation_" + name).dump());
    }
    CHECK(validation.at("test_split_uses") == num_uses);

    const json test = eval(run, "test", layout);
    CHECK(test.at("samples") == 80);
    if (test_metrics.empty()) test_metrics = test.at("metrics").dump();
    CHECK(test.at("metrics").dump() == test_metrics);
    CHECK(test.at("test_split_uses") == ++num_uses);
  }
  CHECK(test_metrics != json(line).dump());
}
