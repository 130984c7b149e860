// Counts by hand, P against the figures of the specification of exact mode, and sums over ranks.
#include <catch2/catch.hpp>

#include "parallel/plan/memory_model.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;

TEST_CASE("parameters of a small model, by hand") {
  Plan plan = sample_plan();
  plan.model.layers = 1;
  plan.model.hidden = 2;
  plan.model.mlp_ratio = 2;
  // stem 2*3072+2; block norm 4, up 4*2+4, down 2*4+2; final norm 4; head 10*2+10
  CHECK(num_parameters(plan) == 6146 + 4 + 12 + 10 + 4 + 30);
  plan.model.layers = 3;
  CHECK(num_parameters(plan) == 6146 + 3 * 26 + 4 + 30);

  // The quickstart: 192*3072+192 + 2*(384 + 768*192+768 + 192*768+192) + 384 + 1930.
  plan.model = {.kind = "mlp", .layers = 2, .hidden = 192};
  CHECK(num_parameters(plan) == 590016 + 2 * 296256 + 384 + 1930);
}

TEST_CASE("what one of two tp ranks holds, by hand") {
  Plan plan = sample_plan();
  plan.model.layers = 1;
  plan.model.hidden = 2;
  plan.model.mlp_ratio = 2;
  plan.numerics.shards = 4;
  plan.layout.tp = 2;
  // Split: stem weight 1536*2, up 2*2+2, down 2*2, head classes 0..5 of 12 (10 and two pads).
  // Whole: stem bias 2, norm 4, down bias 2, final norm 4.
  CHECK(local_parameters(plan, 0).real == 3072 + 6 + 4 + 6 * 3 + 12);
  // As stored each piece begins on a multiple of 64 elements; the small ones take 64 each.
  CHECK(local_parameters(plan, 0).stored == 3072 + 6 * 64 + 6 * 64 + 4 * 64);
  CHECK(local_parameters(plan, 1).real == 3072 + 6 + 4 + 4 * 3 + 12);
  CHECK(local_parameters(plan, 1).stored == 3072 + 6 * 64 + 6 * 64 + 4 * 64);
}

TEST_CASE("split parameters add up over any tp") {
  Plan plan = sample_plan();
  plan.numerics.shards = 12;
  for (index_t tp = 1; tp <= 12; ++tp) {
    plan.layout.tp = tp;
    for (const ParameterShape& shape : parameter_shapes(plan)) {
      index_t sum = 0;
      for (index_t rank = 0; rank < tp; ++rank) sum += shape.spec(plan, rank).held_elements();
      CHECK(sum == shape.num_elements() * (shape.is_split() ? 1 : tp));
    }
  }
}

TEST_CASE("bytes by kind") {
  Plan plan = sample_plan();
  REQUIRE(plan.microbatches_per_lane() == 2);
  const index_t n = local_parameters(plan, 0).stored;
  // Not split, each padded to a multiple of 64: stem bias, two norms and biases of H a block, final
  // norm.
  const index_t padded_hidden = round_up(plan.model.hidden, 64);
  const index_t accumulators =
      plan.numerics.shards * padded_hidden * (1 + 3 * plan.model.layers + 2);
  // One rank, four lanes: the lane being computed on top of the nodes [0,2) and 2: three at once.
  CHECK(gradient_copies(plan, 0) == 3);
  CHECK(rank_memory(plan, 0, 0).parameter_bytes == 4 * n);
  CHECK(rank_memory(plan, 0, 0).gradient_bytes == 12 * n + 4 * accumulators);
  CHECK(rank_memory(plan, 0, 0).optimizer_bytes == 8 * n);
  CHECK(rank_memory(plan, 0, 0).total_bytes() == 24 * n + 4 * accumulators);
  plan.layout.dp = 4;
  CHECK(gradient_copies(plan, 3) == 1);
  plan.optimizer.kind = "sgd";
  CHECK(rank_memory(plan, 0, 0).optimizer_bytes == 0);
  plan.optimizer.momentum = 0.9;
  CHECK(rank_memory(plan, 0, 0).optimizer_bytes == 4 * n);
}

TEST_CASE("a lane of one microbatch needs no copy of its own where it merges at once") {
  Plan plan = sample_plan();
  plan.batch.micro *= 2;
  REQUIRE(plan.microbatches_per_lane() == 1);
  // Lanes 0 and 2 begin nodes, 1 and 3 are added to them: two copies, and room for the stem's
  // weight.
  CHECK(gradient_copies(plan, 0) == 2);
  const index_t n = local_parameters(plan, 0).stored;
  const index_t accumulators =
      plan.numerics.shards * round_up(plan.model.hidden, 64) * (1 + 3 * plan.model.layers + 2);
  CHECK(rank_memory(plan, 0, 0).gradient_bytes ==
        4 * (2 * n + accumulators + plan.model.hidden * 3072));
}

TEST_CASE("bytes sent for gradients") {
  Plan plan = sample_plan();
  const index_t bytes = 4 * local_parameters(plan, 0).stored;
  CHECK(gradient_bytes_sent(plan, 0, 0) == 0);
  plan.layout.dp = 2;  // P = 1: (1+1) * 1/2
  CHECK(gradient_bytes_sent(plan, 0, 0) == bytes);
  plan.layout.dp = 4;  // (1+1) * 3/4
  CHECK(gradient_bytes_sent(plan, 0, 0) == bytes * 3 / 2);
  plan.numerics.lanes = 12;
  plan.layout.dp = 2;  // [0,6) is [0,4) and [4,6); [6,12) is [6,8) and [8,12)
  CHECK(gradient_bytes_sent(plan, 0, 0) == bytes * 3 / 2);
}

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

TEST_CASE("warnings name imbalance, trees, narrow pieces and warm-up") {
  Plan plan = sample_plan();
  plan.model.hidden = 192;
  CHECK(warnings(plan).empty());

  plan.numerics.shards = 12;
  plan.layout.tp = 5;
  plan.optimizer.schedule = {"cosine", 100, 0.0};
  const std::vector<PlanFault> found = warnings(plan);
  REQUIRE(found.size() == 4);
  CHECK(found[0].message ==
        "12 numerics.shards on 5 ranks are 2 2 3 2 3 a rank: the largest share is 1.25 times the "
        "mean; balanced: layout.tp = 4 or 6");
  CHECK(found[1].key == "numerics.shards");
  CHECK(found[1].message.find("tree nodes a rank") != std::string::npos);
  CHECK(found[2].message.find("64 wide") != std::string::npos);
  CHECK(found[3].key == "optimizer.schedule.warmup_steps");

  plan = sample_plan();
  plan.numerics.mode = NumericsMode::fast;
  REQUIRE(warnings(plan).size() == 1);
  CHECK(warnings(plan)[0].key == "numerics.mode");
}
