// P against the figures of the specification of exact mode, shares of ranks and stages, bubbles.
#include <catch2/catch.hpp>

#include "parallel/plan/balance.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;
using weft::testing::sample_vit;

TEST_CASE("mean nodes P are those of the specification") {
  struct Case {
    index_t pieces, ranks;
    double nodes;
  };
  const std::vector<Case> cases = {
      {8, 2, 1},   {8, 4, 1},  {8, 8, 1},  {8, 3, 5.0 / 3},  {12, 3, 1}, {12, 6, 1},
      {12, 12, 1}, {12, 2, 2}, {12, 4, 2}, {16, 3, 7.0 / 3}, {24, 3, 1}, {24, 6, 1},
      {24, 12, 1}, {24, 2, 2}, {24, 4, 2}, {48, 3, 1},       {48, 4, 2}, {64, 3, 11.0 / 3}};
  for (const Case& c : cases) {
    Plan plan = sample_plan();
    plan.numerics.shards = plan.numerics.lanes = c.pieces;
    plan.layout.tp = plan.layout.dp = c.ranks;
    INFO(c.pieces << " pieces on " << c.ranks << " ranks");
    CHECK(tp_tree_factor(plan).nodes == Approx(c.nodes));
    CHECK(dp_tree_factor(plan).nodes == Approx(c.nodes));
  }
}

TEST_CASE("better shards and lanes are legal and better") {
  Plan plan = sample_plan();
  plan.numerics.shards = plan.numerics.lanes = 12;
  plan.batch.global = 192;
  plan.batch.micro = 1;
  plan.layout.tp = plan.layout.dp = 4;
  CHECK(tp_tree_factor(plan).better == std::vector<index_t>{8, 16});
  CHECK(dp_tree_factor(plan).better == std::vector<index_t>{8, 16});
  for (const index_t count : {8, 16}) {
    Plan better = plan;
    better.numerics.shards = better.numerics.lanes = count;
    CHECK(validate(better, 16).empty());
    CHECK(tp_tree_factor(better).nodes == 1);
    CHECK(tp_tree_factor(better).better.empty());
  }
}

TEST_CASE("imbalance") {
  CHECK(shares(5, 12) == std::vector<index_t>{2, 2, 3, 2, 3});  // EXACT section 1
  CHECK(imbalance(5, 12) == Approx(1.25));
  CHECK(imbalance(4, 12) == Approx(1.0));
}

TEST_CASE("better shards of a ViT divide its heads") {
  Plan plan = sample_vit();
  plan.model.hidden = 96;
  plan.model.heads = 24;
  plan.numerics.shards = 12;
  plan.layout.tp = 4;
  CHECK(tp_tree_factor(plan).better == std::vector<index_t>{8});  // 16 does not divide 24
}

TEST_CASE("bubbles") {
  CHECK(ideal_bubble(1, 5) == 0);
  CHECK(ideal_bubble(4, 8) == Approx(3.0 / 11));
  Plan plan = sample_plan();
  plan.numerics.lanes = 4;
  plan.layout.dp = 3;  // 1 1 2 lanes of 2 microbatches
  CHECK(pipeline_microbatches(plan) == 4);
}
