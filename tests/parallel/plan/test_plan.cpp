// The plan's own arithmetic: steps, ranks, stages, rows.
#include <catch2/catch.hpp>
#include <tuple>

#include "parallel/mesh.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;
using weft::testing::sample_vit;

TEST_CASE("arithmetic of steps") {
  Plan plan = sample_plan();
  CHECK(plan.microbatches_per_lane() == 2);
  CHECK(plan.steps_per_epoch() == 351);  // 45000 = 351 x 128 + 72
  plan.batch.last = LastBatch::pad;
  CHECK(plan.steps_per_epoch() == 352);
  CHECK(plan.num_steps() == 20);
  plan.run = {.steps = std::nullopt, .epochs = 3};
  CHECK(plan.num_steps() == 3 * 352);
  plan.task.train = 128;
  CHECK(plan.steps_per_epoch() == 1);
  plan.task.train = 1;
  CHECK(plan.steps_per_epoch() == 1);
}

TEST_CASE("checkpoints of a run") {
  Plan plan = sample_plan();  // 20 steps
  CHECK(plan.num_checkpoints() == 1);
  const auto steps_of = [&] {
    std::vector<index_t> steps;
    for (index_t done = 0; done <= 20; ++done) {
      if (plan.is_checkpoint_due(done)) steps.push_back(done);
    }
    CHECK(std::ssize(steps) == plan.num_checkpoints());
    return steps;
  };
  CHECK(steps_of() == std::vector<index_t>{20});
  plan.checkpoint.every_steps = 8;
  CHECK(steps_of() == std::vector<index_t>{8, 16, 20});
  plan.checkpoint.at_end = false;
  CHECK(steps_of() == std::vector<index_t>{8, 16});
  plan.checkpoint.every_steps = 21;
  CHECK(steps_of().empty());
  plan.checkpoint.every_steps = 0;
  CHECK(steps_of().empty());
  for (const bool at_end : {false, true}) {  // the last step is one of both kinds, and has one
    plan.checkpoint = {.every_steps = 10, .at_end = at_end};
    CHECK(steps_of() == std::vector<index_t>{10, 20});
  }
}

TEST_CASE("most checkpoints at once, against a run played through") {
  Plan plan = sample_plan();
  plan.run.steps = 60;
  const auto played = [&] {
    std::vector<index_t> there;
    std::size_t most = 0;
    for (index_t done = 1; done <= plan.num_steps(); ++done) {
      if (!plan.is_checkpoint_due(done)) continue;
      there.push_back(done);
      most = std::max(most, there.size());
      const auto last = there.end() - std::min<index_t>(std::ssize(there), plan.checkpoint.keep);
      const auto goes = [&](index_t step) { return step % plan.checkpoint.keep_every != 0; };
      if (plan.checkpoint.keep_every == 0)
        there.erase(there.begin(), last);
      else
        there.erase(std::remove_if(there.begin(), last, goes), last);
    }
    return static_cast<index_t>(most);
  };
  for (const index_t every : {0, 1, 4, 7, 60}) {
    for (const index_t keep : {1, 3}) {
      for (const index_t keep_every : {0, 1, 6, 60, 61}) {
        plan.checkpoint = {.every_steps = every, .keep = keep, .keep_every = keep_every};
        CAPTURE(every, keep, keep_every);
        // Never less; more only by those that are among the newest for both reasons.
        CHECK(plan.most_checkpoints() >= played());
        CHECK(plan.most_checkpoints() <= played() + keep + 1);
        if (keep_every == 0) CHECK(plan.most_checkpoints() == played());
      }
    }
  }
  plan.checkpoint = {.every_steps = 4, .keep = 2, .keep_best = 3};
  CHECK(plan.most_checkpoints() == 6);
  plan.checkpoint.every = {60};  // at any step, so at each multiple of 20
  plan.checkpoint.keep_every = 20;
  CHECK(plan.most_checkpoints() == 9);
}

TEST_CASE("ranks are laid out with the first axis of the order fastest") {
  Plan plan = sample_plan();
  plan.layout.tp = 2;
  plan.layout.dp = 3;
  plan.layout.pp = 2;
  CHECK(plan.num_ranks() == 12);
  CHECK(plan.world_rank(1, 0, 0) == 1);
  CHECK(plan.world_rank(0, 1, 0) == 2);
  CHECK(plan.world_rank(0, 0, 1) == 6);
  plan.layout.order = "pp,dp,tp";
  CHECK(plan.world_rank(1, 0, 0) == 6);
  CHECK(plan.world_rank(0, 1, 0) == 2);
  CHECK(plan.world_rank(0, 0, 1) == 1);
}

TEST_CASE("the plan and the mesh agree on who is where, for all orders and sizes") {
  Plan plan = sample_plan();
  for (const std::string& order : std::get<Choices>(find_key("layout.order")->legal).now) {
    plan.layout.order = order;
    for (const auto& [tp, dp, pp] : {std::tuple{1, 1, 1}, {2, 3, 4}, {4, 1, 2}, {1, 5, 3}}) {
      plan.layout.tp = tp;
      plan.layout.dp = dp;
      plan.layout.pp = pp;
      const MeshShape mesh({{"tp", tp}, {"dp", dp}, {"pp", pp}}, order);
      REQUIRE(mesh.num_ranks() == plan.num_ranks());
      for (int rank = 0; rank < mesh.num_ranks(); ++rank) {
        CHECK(plan.world_rank(mesh.coordinate(rank, "tp"), mesh.coordinate(rank, "dp"),
                              mesh.coordinate(rank, "pp")) == rank);
      }
    }
  }
}

TEST_CASE("stages hold every block once, by the range rule or by hand") {
  Plan plan = sample_plan();
  plan.model.layers = 6;
  for (index_t pp = 1; pp <= 6; ++pp) {
    plan.layout.pp = pp;
    index_t next = 0;
    for (index_t stage = 0; stage < pp; ++stage) {
      CHECK(plan.blocks_of_stage(stage) == part_of(stage, pp, 6));
      CHECK(plan.blocks_of_stage(stage).begin == next);
      next = plan.blocks_of_stage(stage).end;
    }
    CHECK(next == 6);
  }
  plan.layout.pp = 3;
  plan.layout.stages = {1, 3, 2};
  CHECK(validate(plan, 3).empty());
  CHECK(plan.blocks_of_stage(0) == Range{0, 1});
  CHECK(plan.blocks_of_stage(1) == Range{1, 4});
  CHECK(plan.blocks_of_stage(2) == Range{4, 6});
}

TEST_CASE("tokens, and the rows of a rank between crossings") {
  CHECK(sample_plan().tokens_per_sample() == 1);
  Plan plan = sample_vit();
  CHECK(plan.tokens_per_sample() == 64);
  CHECK(plan.rows_per_microbatch() == 16 * 64);
  CHECK(plan.features_per_token() == 48);
  plan.model.patch = 16;
  plan.batch.micro = 1;
  CHECK(plan.rows_per_microbatch() == 4);

  // Without sequence parallel all rows; with it those of the rank's token blocks: 36 rows in 5
  // blocks begin at 0 7 14 21 28.
  plan.model.patch = 32;
  plan.batch.micro = 36;
  plan.numerics.shards = 5;
  plan.layout.tp = 2;
  CHECK(plan.rows_of(1) == Range{0, 36});
  CHECK(plan.token_blocks_of(1) == Range{0, 5});
  plan.layout.sequence_parallel = true;
  CHECK(plan.token_blocks_of(0) == Range{0, 2});
  CHECK(plan.rows_of(0) == Range{0, 14});
  CHECK(plan.rows_of(1) == Range{14, 36});
  plan.numerics.mode = NumericsMode::fast;
  CHECK(plan.num_token_blocks() == 2);
  CHECK(plan.rows_of(1) == Range{18, 36});
}
