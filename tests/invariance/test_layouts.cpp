// The first promise, on the real program: one result on every layout. No expected hash is stored
// anywhere: the runs are compared with each other, on this machine.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/weft_process.hpp"

namespace {

using weft::test::ProcessResult;

struct Layout {
  int tp;
  int dp;
  std::string more;  // further --set
};

std::string text_of(const Layout& layout) {
  return "tp=" + std::to_string(layout.tp) + " dp=" + std::to_string(layout.dp) + " " + layout.more;
}

// Every (tp, dp) of the two lists whose product is at most 12.
std::vector<Layout> grid(const std::vector<int>& tps, const std::vector<int>& dps) {
  std::vector<Layout> layouts;
  for (const int tp : tps) {
    for (const int dp : dps) {
      if (tp * dp <= 12) layouts.push_back({tp, dp, ""});
    }
  }
  return layouts;
}

struct Hashes {
  std::string state;
  std::string loss;
  friend bool operator==(const Hashes&, const Hashes&) = default;
};

// Trains `plan` (arguments of weft train) on a layout. Checks on the way that each rank holds only
// its shard: the parameters cut over tp are counted once over the ranks of a replica.
Hashes train(const std::string& plan, const Layout& layout) {
  const std::string run = weft::test::fresh_folder("run") + "/it";
  const ProcessResult result = weft::test::run_weft_ranks(
      layout.tp * layout.dp,
      "train " + plan + " --json --run " + run + " --set layout.tp=" + std::to_string(layout.tp) +
          " --set layout.dp=" + std::to_string(layout.dp) + " " + layout.more);
  INFO(text_of(layout) << "\n" << result.text);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json summary = result.json();
  return {summary.at("state_hash"), summary.at("loss_hash")};
}

void require_one_result(const std::string& plan, const std::vector<Layout>& layouts) {
  const Hashes first = train(plan, layouts.front());
  for (std::size_t i = 1; i < layouts.size(); ++i) {
    const Hashes other = train(plan, layouts[i]);
    INFO(text_of(layouts[i]) << " against " << text_of(layouts.front()));
    CHECK(other.state == first.state);
    CHECK(other.loss == first.loss);
  }
  std::cout << layouts.size() << " layouts, state_hash " << first.state << ", loss_hash "
            << first.loss << std::endl;
}

const std::string twelve = WEFT_PLANS "/cifar10-mlp-12.toml";
const std::string four = WEFT_PLANS "/cifar10-mlp.toml --set run.steps=12";

#ifdef WEFT_WITH_UCX
const std::string transports = "ucx,mpi";
constexpr std::size_t num_transports = 2;
#else
const std::string transports = "mpi";
constexpr std::size_t num_transports = 1;
#endif

// A synthetic set of 10,000 training images, made once.
std::string synthetic_data() {
  const std::string folder = weft::test::test_folder() + "/synthetic-cifar10";
  if (!std::filesystem::exists(folder + "/test_batch.bin")) {
    const ProcessResult made = weft::test::run_weft("data make cifar10 " + folder + " --rows 2000");
    INFO(made.text);
    REQUIRE(made.exit_code == 0);
  }
  return " --data " + folder + " --set 'task.split={train=9000,validation=1000,seed=7}'";
}

}  // namespace

TEST_CASE("one result on every layout of 12 shards and 12 lanes", "[synthetic]") {
  // With everything on that draws numbers or scales: dropout, augmentation, clipping.
  require_one_result(twelve + synthetic_data() + " --set model.dropout=0.1",
                     grid({1, 2, 3, 4, 5, 6, 12}, {1, 2, 3, 4, 6, 12}));
}

TEST_CASE("weft layouts: a grid in one allocation, with the bits of weft train", "[synthetic]") {
  const std::string plan =
      WEFT_PLANS "/cifar10-vit-12.toml" + synthetic_data() + " --set run.steps=3";
  const ProcessResult result = weft::test::run_weft_ranks(
      4, "layouts " + plan +
             " --warmup 1 --repeat 2 --json --grid 'tp=1,2 dp=1,2 pp=1,2 zero=0,1"
             " schedule=gpipe,1f1b transport=" +
             transports + " sequence_parallel=true,false'");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json table = result.json();
  CHECK(table.at("same_bits") == true);
  // By hand: 1, and for each transport 2 for each axis of two ranks; all three need 8 ranks.
  CHECK(table.at("rows").size() == 1 + num_transports * (3 * 2 + 3 * 4));
  CHECK(table.at("skipped").size() == num_transports * 8);
  const Hashes expected = train(plan, {1, 1, ""});
  for (const nlohmann::json& row : table.at("rows")) {
    INFO(row.dump());
    CHECK(Hashes{row.at("state_hash"), row.at("loss_hash")} == expected);
    CHECK(row.at("same_bits") == true);
    CHECK(row.at("runs").size() == 2);
    CHECK(row.at("step_ms").at("median") > 0.0);
    CHECK((row.at("bytes_sent_per_step") > 0.0) == (row.at("ranks") > 1));
    CHECK((row.at("bubble_percent") > 0.0) == (row.at("layout").at("pp") > 1));
    CHECK(row.at("hidden_buckets_percent").is_null() == (row.at("layout").at("dp") == 1));
    double sum = 0.0;
    for (const nlohmann::json& part : row.at("account_percent")) {
      CHECK(part > -0.01);
      sum += part.get<double>();
    }
    CHECK(sum == Approx(100));
  }
  CHECK(result.text.find("same bits on all ") != std::string::npos);
}

TEST_CASE("weft layouts: weak scaling and evaluation, with what weft train gives", "[synthetic]") {
  const std::string plan = four + synthetic_data() + " --set run.steps=3";
  const ProcessResult result = weft::test::run_weft_ranks(
      2, "layouts " + plan +
             " --set 'task.accept={metric=\"accuracy\",at_least=0.0}' --warmup 1 --json"
             " --scaling weak --evaluate --grid 'dp=1,2'");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json table = result.json();
  CHECK(table.at("same_bits") == true);
  CHECK(table.at("acceptance").at("all_accepted") == true);
  const nlohmann::json& rows = table.at("rows");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].at("scaling") == "baseline");
  CHECK(rows[1].at("scaling") == "weak");
  CHECK(rows[1].at("global_batch") == 2 * rows[0].at("global_batch").get<int>());
  for (const nlohmann::json& row : rows) {
    const std::string run = weft::test::fresh_folder("run") + "/it";
    const ProcessResult trained = weft::test::run_weft_ranks(
        row.at("ranks").get<int>(),
        "train " + plan + " --json --run " + run +
            " --set layout.dp=" + std::to_string(row.at("ranks").get<int>()) +
            " --set batch.global=" + std::to_string(row.at("global_batch").get<int>()));
    INFO(trained.text);
    REQUIRE(trained.exit_code == 0);
    const nlohmann::json summary = trained.json();
    CHECK(row.at("state_hash") == summary.at("state_hash"));
    CHECK(row.at("loss_hash") == summary.at("loss_hash"));
    const nlohmann::json& metrics = summary.at("metrics");
    for (const char* metric : {"loss", "accuracy", "macro_f1"}) {
      CHECK(row.at("validation").at(metric) == metrics.at(std::string("validation_") + metric));
    }
  }
}

TEST_CASE("weft layouts without a grid: the plan's candidates beside its baseline",
          "[synthetic]") {
  // The plan's own study has pp = 2, too, and needs eight ranks for one of its layouts.
  const std::string plan = WEFT_PLANS "/cifar10-vit-12.toml" + synthetic_data();
  const std::string end = " --steps 3 --warmup 1 --json";
  const ProcessResult own = weft::test::run_weft_ranks(4, "layouts " + plan + end);
  INFO(own.text);
  REQUIRE(own.exit_code == 0);
  CHECK(own.json().at("grid_from") == "study.candidates");
  CHECK(own.json().at("rows").size() == 7);
  CHECK(own.json().at("skipped").size() == 1);
  CHECK(own.text.find("tp=1 dp=1 pp=1 (baseline) ") != std::string::npos);

  const std::string study =
      " --set 'study.candidates=\"tp=1,2\"' --set 'study.baseline=\"dp=2 transport=mpi\"'";
  const ProcessResult other = weft::test::run_weft_ranks(2, "layouts " + plan + study + end);
  INFO(other.text);
  REQUIRE(other.exit_code == 0);
  const nlohmann::json table = other.json();
  REQUIRE(table.at("rows").size() == 3);
  CHECK(table.at("rows")[0].at("name") == "tp=1 dp=2 pp=1 mpi");
  for (const nlohmann::json& row : table.at("rows")) {
    CHECK(row.at("is_baseline") == (row.at("layout").at("dp") == 2));
    CHECK(row.at("state_hash") == own.json().at("rows")[0].at("state_hash"));
  }
  CHECK(table.at("rows")[0].at("speed_up") == 1);

  const ProcessResult given =
      weft::test::run_weft_ranks(2, "layouts " + plan + study + end + " --grid tp=1");
  INFO(given.text);
  REQUIRE(given.exit_code == 0);
  CHECK(given.json().at("rows").size() == 1);
  CHECK(given.text.find("layouts of --grid; those of the plan's [study] are passed over") !=
        std::string::npos);
}

TEST_CASE("rank order and threads are layout", "[synthetic]") {
  require_one_result(twelve + synthetic_data(), {{1, 1, ""},
                                                 {3, 2, ""},
                                                 {3, 2, "--set layout.order=dp,tp,pp"},
                                                 {2, 2, "--set layout.threads=2"},
                                                 {1, 1, "--set layout.threads=3"}});
}

TEST_CASE("SGD, padded last batches and several epochs on layouts that divide and that do not",
          "[synthetic]") {
  // 900 images, batches of 128: the eighth of each epoch has 4 real images.
  const std::string plan =
      WEFT_PLANS "/cifar10-mlp.toml" + synthetic_data() +
      " --set 'task.split={train=900,validation=100,seed=7}' --set run.steps=17"
      " --set batch.last=pad --set model.dropout=0.2 --set optimizer.kind=sgd"
      " --set optimizer.momentum=0.9 --set optimizer.lr=0.05";
  require_one_result(plan, {{1, 1, ""},
                            {2, 1, ""},
                            {3, 1, ""},
                            {4, 1, ""},
                            {1, 2, ""},
                            {1, 3, ""},
                            {2, 4, ""},
                            {4, 2, ""}});
}

TEST_CASE("another weight, seed or order of samples is another hash", "[synthetic]") {
  const std::string plan = four + synthetic_data();
  std::set<std::string> states, losses;
  const std::vector<std::string> changes = {
      "",
      "--set numerics.seed=2",
      "--set 'task.split={train=9000,validation=1000,seed=8}'",
      "--set optimizer.weight_decay=0.04",
      "--set numerics.shards=2",
      "--set numerics.lanes=2",
      "--set task.augment=false"};
  for (const std::string& change : changes) {
    const Hashes hashes = train(plan, {1, 1, change});
    states.insert(hashes.state);
    losses.insert(hashes.loss);
  }
  CHECK(states.size() == changes.size());
  CHECK(losses.size() == changes.size());
}

TEST_CASE("fast mode trains to nearly the same loss on every layout", "[synthetic]") {
  // No bits are promised. Sums in another order move a loss after 12 steps by rounding alone: some
  // 1e-6 relative here, and 1e-4 leaves room for other processors.
  const std::string plan = four + synthetic_data() + " --set numerics.mode=fast --json --run ";
  double first = 0.0;
  for (const Layout& layout :
       std::vector<Layout>{{1, 1, ""}, {2, 2, ""}, {4, 1, ""}, {1, 4, ""}, {3, 1, ""}}) {
    const std::string run = weft::test::fresh_folder("run") + "/it";
    const ProcessResult result = weft::test::run_weft_ranks(
        layout.tp * layout.dp, "train " + plan + run +
                                   " --set layout.tp=" + std::to_string(layout.tp) +
                                   " --set layout.dp=" + std::to_string(layout.dp));
    INFO(text_of(layout) << "\n" << result.text);
    REQUIRE(result.exit_code == 0);
    const double loss = result.json().at("final_loss");
    if (first == 0.0) first = loss;
    CHECK(loss == Approx(first).epsilon(1e-4));
  }
}

TEST_CASE("one result on every layout, on the real CIFAR-10", "[real_data]") {
  const char* folder = std::getenv("WEFT_TEST_CIFAR10");
  if (!folder || !*folder) {
    REQUIRE(std::getenv("WEFT_REQUIRE_REAL_DATA") == nullptr);
    std::cout << "SKIPPED: WEFT_TEST_CIFAR10 does not name a folder with the official CIFAR-10\n";
    return;
  }
  require_one_result(twelve + " --data " + folder,
                     grid({1, 2, 3, 4, 5, 6, 12}, {1, 2, 3, 4, 6, 12}));
}
