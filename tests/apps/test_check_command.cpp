// The report of `weft check`: exit codes, the figures in it, one JSON object on one line.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/check_command.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;

namespace {

struct Output {
  int code;
  std::string text;
  std::string out;
};

Output check(const Plan& plan, std::optional<index_t> num_ranks, bool json) {
  std::ostringstream text, out;
  const int code = check_plan(plan, num_ranks, json, text, out);
  return {code, text.str(), out.str()};
}

Plan eight_ranks() {
  Plan plan = sample_plan();
  plan.layout.tp = 4;
  plan.layout.dp = 2;
  return plan;
}

}  // namespace

TEST_CASE("a legal plan is explained") {
  const Output output = check(eight_ranks(), 8, false);
  CHECK(output.code == 0);
  CHECK(output.out.empty());
  for (const char* part :
       {"8 ranks = tp 4 x dp 2", "tp groups 0 1 2 3 | 4 5 6 7", "dp groups 0 4 | 1 5 | 2 6 | 3 7",
        "128 = 16 rows x 2 microbatches x 4 lanes; each of 2 replicas computes lanes 0-1, 2-3: 64 "
        "samples a step",
        "an epoch of 45000 samples is 351 (72 samples dropped)",
        "4 pieces on 4 ranks: 1 1 1 1 a rank"}) {
    INFO(output.text);
    CHECK(output.text.find(part) != std::string::npos);
  }
}

TEST_CASE("JSON is one object on one line") {
  const Output output = check(eight_ranks(), 8, true);
  REQUIRE(output.out.find('\n') == output.out.size() - 1);
  const auto json = nlohmann::json::parse(output.out);
  CHECK(json["legal"] == true);
  CHECK(json["ranks"] == 8);
  CHECK(json["layout"]["tp"] == 4);
  CHECK(json["batch"]["microbatches_per_lane"] == 2);
  CHECK(json["steps_per_epoch"] == 351);
  CHECK(json["dp"]["tree_factor"] == 1.0);
  CHECK(json["memory_bytes"]["total"] == json["memory_bytes"]["parameters"].get<index_t>() +
                                             json["memory_bytes"]["gradients"].get<index_t>() +
                                             json["memory_bytes"]["optimizer"].get<index_t>());
}

TEST_CASE("a plan with faults exits with 2 and lists all of them") {
  Plan plan = eight_ranks();
  plan.batch.global = 100;
  const Output output = check(plan, 4, true);
  CHECK(output.code == 2);
  CHECK(output.text.find("batch.global: expected") != std::string::npos);
  CHECK(output.text.find("layout: 4 ranks were started") != std::string::npos);
  const auto json = nlohmann::json::parse(output.out);
  CHECK(json["legal"] == false);
  REQUIRE(json["faults"].size() == 2);
  CHECK(json["faults"][0]["fixes"][0]["batch.global"] == "128");
}

TEST_CASE("a grid too large to list is still reported") {
  Plan plan = sample_plan();
  plan.model.hidden = 192;
  plan.numerics.shards = 48;
  plan.layout.tp = 48;
  const Output output = check(plan, std::nullopt, false);
  CHECK(output.code == 0);
  CHECK(output.text.find("tp groups") == std::string::npos);
}
