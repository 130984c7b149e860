// The first promise on the whole grid: one result for the vision transformer on every layout of
// tensor, data and pipeline parallel, ZeRO, schedules, transports, stages and rank orders. By
// `weft layouts`, and the runs' hashes compared once more here: its own verdict is not taken on
// trust.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>

#include "tests/weft_process.hpp"

namespace {

using weft::test::ProcessResult;

constexpr int num_ranks = 12;

#ifdef WEFT_WITH_UCX
constexpr bool has_ucx = true;
#else
constexpr bool has_ucx = false;
#endif
const std::string first_transport = has_ucx ? "ucx" : "mpi";
const std::string all_transports = has_ucx ? "ucx,mpi" : "mpi";
constexpr std::size_t num_transports = has_ucx ? 2 : 1;

// What all layouts of all grids gave.
struct Results {
  std::set<std::string> layouts, states, losses;
  std::size_t num_rows = 0;
};

// Runs a grid and adds what it gave. `num_rows`: layouts that must run.
void run_grid(const std::string& plan, const std::string& grid, std::size_t num_rows,
              Results& results) {
  const ProcessResult result = weft::test::run_weft_ranks(
      num_ranks, "layouts " + plan + " --warmup 0 --json --grid \"" + grid + "\"");
  INFO(grid << "\n" << result.text);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json json = result.json();
  CHECK(json.at("same_bits") == true);
  CHECK(json.at("rows").size() == num_rows);
  for (const auto& row : json.at("rows")) {
    results.layouts.insert(row.at("layout").dump());
    results.states.insert(row.at("state_hash").get<std::string>());
    results.losses.insert(row.at("loss_hash").get<std::string>());
    ++results.num_rows;
  }
}

void require_one_result(const Results& results) {
  CHECK(results.layouts.size() == results.num_rows);
  CHECK(results.states.size() == 1);
  CHECK(results.losses.size() == 1);
  std::cout << results.num_rows << " layouts, state_hash " << *results.states.begin()
            << ", loss_hash " << *results.losses.begin() << std::endl;
}

const std::string vit = WEFT_PLANS "/cifar10-vit-12.toml";

}  // namespace

TEST_CASE("one result on the whole grid, on the real CIFAR-10", "[real_data]") {
  const char* folder = std::getenv("WEFT_TEST_CIFAR10");
  if (!folder || !*folder) {
    REQUIRE(std::getenv("WEFT_REQUIRE_REAL_DATA") == nullptr);
    std::cout << "SKIPPED: WEFT_TEST_CIFAR10 does not name a folder with the official CIFAR-10\n";
    return;
  }
  const std::string plan = vit + " --data " + folder + " --steps 20";
  Results results;
  // Every (tp, dp, pp) of these sizes on up to 12 ranks.
  run_grid(plan, "tp=1,2,3,4,6 dp=1,2,3,4,6 pp=1,2,3,4,6 transport=" + first_transport, 47,
           results);
  // Both schedules, ZeRO, transports, sequence parallel against each other.
  run_grid(plan,
           "tp=3 dp=2 pp=2 zero=0,1 schedule=gpipe,1f1b transport=mpi sequence_parallel=false,true "
           "bucket_bytes=100000",
           8, results);
  run_grid(
      plan,
      "tp=2 dp=2 pp=3 zero=1 schedule=gpipe sequence_parallel=true transport=" + all_transports,
      num_transports, results);
  // Stages by hand, and where ranks sit.
  run_grid(plan, "tp=2 dp=2 pp=3 stages=[1,2,3],[4,1,1] transport=mpi", 2, results);
  run_grid(plan,
           "tp=2 dp=3 pp=2 zero=1 sequence_parallel=true bucket_bytes=50000 "
           "order=tp-dp-pp,tp-pp-dp,dp-tp-pp,dp-pp-tp,pp-tp-dp,pp-dp-tp transport=" +
               first_transport,
           6, results);
  run_grid(plan, "tp=5 dp=2 pp=1 zero=1 sequence_parallel=true threads=1,2 transport=mpi", 2,
           results);
  require_one_result(results);
}
