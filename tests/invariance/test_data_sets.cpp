// The first promise for the models of tables and texts: one result on every layout of the grid,
// ZeRO, schedules and sequence parallel; of the generator with its tied table on one, two and three
// stages. On the real set where it is, else on a synthetic one.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>

#include "tests/weft_process.hpp"

namespace {

using weft::test::ProcessResult;

constexpr int num_ranks = 8;

struct Model {
  std::string plan;  // of apps/plans
  std::string set;   // as `weft data make` calls it
  const char* real;  // variable that names the folder of the real one
  std::string keys;  // makes the plan small
  std::string grid = "";  // one more, of one layout
};

// The folder of a set; made where the real one is not there.
std::string folder_of(const Model& model) {
  const char* real = std::getenv(model.real);
  if (real && *real) return real;
  const std::string folder = "data-sets-" + model.set;
  std::filesystem::remove_all(folder);
  const ProcessResult made =
      weft::test::run_weft("data make " + model.set + " " + folder + " --seed 5");
  INFO(made.text);
  REQUIRE(made.exit_code == 0);
  return folder;
}

// Where the build has UCX.
#ifdef WEFT_WITH_UCX
const std::string other_transport =
    "tp=2 dp=2 pp=2 zero=1 sequence_parallel=true schedule=gpipe transport=ucx";
#else
const std::string other_transport;
#endif

struct Results {
  std::set<std::string> layouts, states, losses;
};

void run_grid(const Model& model, const std::string& data, const std::string& grid,
              std::size_t num_rows, Results& results) {
  std::string sets;
  for (std::string keys = model.keys; !keys.empty();) {
    const auto end = keys.find(' ');
    sets += " --set " + keys.substr(0, end);
    keys = end == std::string::npos ? "" : keys.substr(end + 1);
  }
  const ProcessResult result = weft::test::run_weft_ranks(
      num_ranks, "layouts " WEFT_PLANS "/" + model.plan + ".toml --data " + data + sets +
                     " --steps 12 --warmup 0 --json --grid \"" + grid + "\"");
  INFO(model.plan << ": " << grid << "\n" << result.text);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json json = result.json();
  CHECK(json.at("rows").size() == num_rows);
  for (const auto& row : json.at("rows")) {
    results.layouts.insert(row.at("layout").dump());
    results.states.insert(row.at("state_hash").get<std::string>());
    results.losses.insert(row.at("loss_hash").get<std::string>());
  }
}

}  // namespace

TEST_CASE("one result on every layout for a table, a classifier of texts and a generator") {
  const std::string transformer =
      "model.hidden=48 model.heads=4 model.layers=3 batch.micro=2 batch.global=16";
  const std::vector<Model> models = {
      {"bank-mlp", "bank", "WEFT_TEST_BANK",
       "model.hidden=48 model.layers=3 batch.micro=4 batch.global=32 task.split.train=900 "
       "task.split.validation=100 task.split.test=100 task.class_weights=balanced "
       "task.rare_share=0.3"},
      {"ag-news-encoder", "ag_news", "WEFT_TEST_AG_NEWS",
       transformer + " task.tokens=15 task.vocabulary=203 task.split.train=400 "
                     "task.split.validation=50"},
      {"ag-news-encoder", "ag_news", "WEFT_TEST_AG_NEWS",
       transformer + " task.tokens=40 task.length_buckets=[16,24,32,40] task.vocabulary=203 "
                     "task.split.train=400 task.split.validation=50",
       other_transport},
      {"text-gpt", "text", "WEFT_TEST_TEXT",
       transformer + " task.tokens=12 task.split.train=400 task.split.validation=20 "
                     "task.split.test=20 model.dropout=0.1"}};
  for (const Model& model : models) {
    std::string data = folder_of(model);
    if (model.set == "text" && std::getenv(model.real)) data += "/tinyshakespeare.txt";
    Results results;
    run_grid(model, data, "tp=1,2,4 dp=1,2,4 pp=1,2,3 transport=mpi", 17, results);
    run_grid(model, data,
             "tp=2 dp=2 pp=2 zero=0,1 schedule=gpipe,1f1b sequence_parallel=false,true "
             "bucket_bytes=20000 transport=mpi",
             8, results);
    INFO(model.plan);
    if (!model.grid.empty()) run_grid(model, data, model.grid, 1, results);
    CHECK(results.layouts.size() == (model.grid.empty() ? 25 : 26));
    CHECK(results.states.size() == 1);
    CHECK(results.losses.size() == 1);
    std::cout << model.plan << ": " << results.layouts.size() << " layouts, state_hash "
              << *results.states.begin() << ", loss_hash " << *results.losses.begin() << std::endl;
  }
}
