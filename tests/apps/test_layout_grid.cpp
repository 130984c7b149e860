// The grid of `weft layouts`: what its text means, which layouts run, and each only once.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "apps/layout_grid.hpp"
#include "core/error.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;
using weft::testing::sample_vit;

namespace {

const std::vector<std::string> both = {"ucx", "mpi", "local"};

GridLayouts layouts(const Plan& plan, const std::string& grid, int num_ranks) {
  return layouts_of(plan, parse_grid(grid), num_ranks, both);
}

std::vector<std::string> names(const GridLayouts& found) {
  std::vector<std::string> list;
  for (const GridLayout& layout : found.to_run) list.push_back(layout.name);
  return list;
}

void require_fault(const std::string& grid, const std::vector<std::string>& parts) {
  INFO(grid);
  try {
    parse_grid(grid);
    FAIL("no error");
  } catch (const Error& error) {
    INFO(error.what());
    CHECK(error.code() == ExitCode::usage);
    const std::string message = error.what();
    CHECK(message.starts_with("--grid: "));
    CHECK(std::count(message.begin(), message.end(), '\n') == 0);
    for (const std::string& part : parts) {
      INFO("expected: " << part);
      CHECK(message.find(part) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("a grid's keys and values", "[layout_grid]") {
  const std::vector<GridAxis> axes = parse_grid(
      " tp=1,2  sequence_parallel=true,false\tschedule=gpipe "
      "stages=even,[1,2, 3] order=dp-tp-pp,\"pp,dp,tp\",'tp,dp,pp' layout.threads=4 "
      "comm.transport=mpi bucket_bytes=65536");
  REQUIRE(axes.size() == 8);
  CHECK(axes[0].key->name == "layout.tp");
  CHECK(axes[0].values == std::vector<KeyValue>{index_t{1}, index_t{2}});
  CHECK(axes[1].values == std::vector<KeyValue>{true, false});
  CHECK(axes[2].values == std::vector<KeyValue>{std::string("gpipe")});
  CHECK(axes[3].values ==
        std::vector<KeyValue>{std::string("even"), std::vector<index_t>{1, 2, 3}});
  CHECK(axes[4].values == std::vector<KeyValue>{std::string("dp,tp,pp"), std::string("pp,dp,tp"),
                                                std::string("tp,dp,pp")});
  CHECK(axes[5].key->name == "layout.threads");
  CHECK(axes[6].key->name == "comm.transport");
  CHECK(axes[7].key->name == "comm.bucket_bytes");
}

TEST_CASE("a slip in a grid is one message that names what was meant", "[layout_grid]") {
  require_fault("", {"empty", "tp=1,2"});
  require_fault("tp", {"KEY=VALUE", "\"tp\""});
  require_fault("=2", {"KEY=VALUE"});
  require_fault("zreo=0,1", {"zreo", "did you mean zero?"});
  require_fault("sequence_paralel=true", {"did you mean sequence_parallel?"});
  require_fault("layout.shedule=gpipe", {"did you mean schedule?"});
  require_fault("micro=4", {"micro", "--set"});
  require_fault("timeout_s=4", {"timeout_s: not a key"});
  require_fault("time_limit=4", {"time_limit: not a key"});
  require_fault("replicas_every_steps=4", {"replicas_every_steps: not a key"});
  require_fault("tp=1 dp=2 tp=2", {"tp is given twice"});
  require_fault("tp=", {"tp: expected an integer", "found nothing"});
  require_fault("tp=1,,2", {"tp: expected an integer", "found nothing"});
  require_fault("tp=two", {"tp: expected an integer", "two"});
  require_fault("tp=2x", {"2x"});
  require_fault("tp=0", {"tp", "found 0", "1"});
  require_fault("zero=2", {"zero", "not in this version"});
  require_fault("schedule=gpip", {"gpip", "gpipe"});
  require_fault("transport=uxc", {"uxc", "ucx"});
  require_fault("sequence_parallel=yes", {"sequence_parallel: expected", "yes"});
  require_fault("order=tp-dp", {"order"});
  require_fault("stages=[1,2", {"bracket", "[1,2"});
  require_fault("stages=[1,x]", {"stages: expected", "[1,x]"});
  require_fault("order=\"tp,dp", {"quote"});
}

// The table of [layout] in the README, and the two of [comm] that move bytes.
TEST_CASE("a grid has the keys of the layout and of its messages, and no others",
          "[layout_grid]") {
  const std::set<std::string> expected = {
      "layout.tp",     "layout.dp",       "layout.pp",         "layout.zero",
      "layout.order",  "layout.stages",   "layout.threads",    "layout.sequence_parallel",
      "layout.schedule", "comm.transport", "comm.bucket_bytes"};
  std::set<std::string> taken;
  for (const PlanKey& key : plan_keys()) {
    try {
      parse_grid(key.name + "=?");
      taken.insert(key.name);
    } catch (const Error& error) {
      if (std::string(error.what()).find("not a key of the layout") == std::string::npos)
        taken.insert(key.name);
    }
  }
  CHECK(taken == expected);
}

TEST_CASE("layouts come in the grid's order, the last key fastest", "[layout_grid]") {
  CHECK(names(layouts(sample_plan(), "tp=1,2 dp=1,2 transport=ucx", 4)) ==
        std::vector<std::string>{"tp=1 dp=1 pp=1", "tp=1 dp=2 pp=1 ucx", "tp=2 dp=1 pp=1 ucx",
                                 "tp=2 dp=2 pp=1 ucx"});
  Plan plan = sample_vit();
  plan.layout.zero = 1;
  plan.comm.bucket_bytes = 4096;
  plan.comm.transport = "mpi";
  CHECK(names(layouts(plan, "dp=2,1 pp=2 schedule=gpipe tp=1", 4)) ==
        std::vector<std::string>{"tp=1 dp=2 pp=2 zero=1 gpipe bucket_bytes=4096 mpi",
                                 "tp=1 dp=1 pp=2 gpipe mpi"});
}

TEST_CASE("combinations that are the same run are run once", "[layout_grid]") {
  const std::string grid =
      "tp=1,2 dp=1,2 pp=1,2 zero=0,1 schedule=gpipe,1f1b transport=ucx,mpi "
      "sequence_parallel=true,false";
  // By hand: 1 on one rank; 2 transports x 2 for each axis with two ranks: 3 x 4, 3 x 8, 1 x 16.
  const GridLayouts all = layouts(sample_vit(), grid, 8);
  CHECK(all.to_run.size() == 1 + 12 + 24 + 16);
  CHECK(all.num_duplicates == 128 - 53);
  CHECK(all.skipped.empty());
  const GridLayouts four = layouts(sample_vit(), grid, 4);
  CHECK(four.to_run.size() == 37);
  CHECK(four.skipped.size() == 16);
  CHECK(four.num_duplicates == 75);
  std::set<std::string> different;
  for (const GridLayout& layout : all.to_run) {
    different.insert(layout.name);
    CHECK(validate(layout.plan, layout.plan.num_ranks()).empty());
  }
  CHECK(different.size() == all.to_run.size());
}

TEST_CASE("orders that lay the same ranks out alike, and stages cut as even ones",
          "[layout_grid]") {
  const std::string orders =
      " order=tp-dp-pp,tp-pp-dp,dp-tp-pp,dp-pp-tp,pp-tp-dp,pp-dp-tp transport=mpi";
  CHECK(names(layouts(sample_plan(), "tp=2 dp=2" + orders, 4)) ==
        std::vector<std::string>{"tp=2 dp=2 pp=1 mpi", "tp=2 dp=2 pp=1 order=dp-tp-pp mpi"});
  CHECK(layouts(sample_plan(), "tp=2 dp=2 pp=2" + orders, 8).to_run.size() == 6);
  CHECK(layouts(sample_plan(), "dp=2" + orders, 8).to_run.size() == 1);

  Plan plan = sample_plan();
  plan.model.layers = 3;
  const GridLayouts found = layouts(plan, "pp=1,2 stages=even,[1,2],[2,1],[3] transport=mpi", 2);
  CHECK(names(found) == std::vector<std::string>{"tp=1 dp=1 pp=1", "tp=1 dp=1 pp=2 1f1b mpi",
                                                 "tp=1 dp=1 pp=2 1f1b stages=[2,1] mpi"});
  CHECK(found.num_duplicates == 2);  // [3] on one stage, [1,2] on two
  CHECK(found.skipped.size() == 3);
}

TEST_CASE("what cannot run is listed with the first reason", "[layout_grid]") {
  const GridLayouts found = layouts(sample_plan(), "tp=1,2,8 dp=1,3 transport=local,auto,mpi", 4);
  Plan too_many = sample_plan();
  too_many.layout.tp = 8;
  const PlanFault fault = validate(too_many, std::nullopt).front();
  std::set<std::string> reasons;
  for (const SkippedLayout& one : found.skipped) {
    reasons.insert(one.reason);
    if (one.plan.layout.tp == 8) CHECK(one.reason.starts_with("layout.tp: "));
    if (one.plan.layout.tp == 2 && one.plan.layout.dp == 3)
      CHECK(one.reason == "needs 6 ranks; 4 were started");
  }
  CHECK(reasons.count(fault.key + ": " + fault.message) == 1);
  CHECK(reasons.count("comm.transport: local serves one rank") == 1);
  CHECK(names(found) == std::vector<std::string>{"tp=1 dp=1 pp=1", "tp=1 dp=3 pp=1",
                                                 "tp=1 dp=3 pp=1 mpi", "tp=2 dp=1 pp=1",
                                                 "tp=2 dp=1 pp=1 mpi"});

  const GridLayouts without =
      layouts_of(sample_plan(), parse_grid("dp=1,2 transport=ucx"), 2, {"mpi", "local"});
  CHECK(names(without) == std::vector<std::string>{"tp=1 dp=1 pp=1"});
  REQUIRE(without.skipped.size() == 1);
  CHECK(without.skipped[0].reason ==
        "comm.transport: this build does not have ucx, only mpi, local");
}

TEST_CASE("a grid of days is refused", "[layout_grid]") {
  std::string grid = "tp=1";
  for (int i = 2; i <= 70; ++i) grid += "," + std::to_string(i);
  const std::string square = grid + " dp" + grid.substr(2);
  CHECK_THROWS_WITH(layouts(sample_plan(), square, 4), Catch::Contains("at most 4096"));
  CHECK_NOTHROW(layouts(sample_plan(), grid + " dp=1,2", 4));
}
