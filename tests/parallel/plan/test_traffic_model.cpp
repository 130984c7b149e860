// Bytes sent per step, counted by hand for small layouts.
#include <catch2/catch.hpp>

#include "parallel/plan/parameter_shapes.hpp"
#include "parallel/plan/traffic_model.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_gpt;
using weft::testing::sample_plan;
using weft::testing::sample_vit;

namespace {

// 2 blocks, hidden 48, 128 = 16 x 2 x 4: 8 microbatches in all, of 16 samples.
constexpr double mlp_stream = 4.0 * 16 * 48;       // bytes of a microbatch's rows
constexpr double vit_stream = 4.0 * 16 * 64 * 48;  // 64 tokens

}  // namespace

TEST_CASE("one rank sends nothing") {
  for (Plan plan : {sample_plan(), sample_vit()}) {
    plan.layout.sequence_parallel = true;
    plan.layout.zero = 1;
    CHECK(rank_traffic(plan, 0, 0, 0).total_bytes() == 0);
  }
}

TEST_CASE("gradients over dp") {
  for (const index_t zero : {0, 1}) {
    Plan plan = sample_plan();
    plan.layout.zero = zero;
    const double bytes = 4.0 * static_cast<double>(local_parameters(plan, 0).stored);
    plan.layout.dp = 2;  // P = 1: (1+1) * 1/2
    CHECK(rank_traffic(plan, 0, 0, 0).dp_bytes == Approx(bytes));
    plan.layout.dp = 4;  // (1+1) * 3/4
    CHECK(rank_traffic(plan, 0, 3, 0).dp_bytes == Approx(bytes * 3 / 2));
    plan.numerics.lanes = 12;
    plan.layout.dp = 2;  // [0,6) is [0,4) and [4,6); [6,12) is [6,8) and [8,12)
    CHECK(rank_traffic(plan, 0, 0, 0).dp_bytes == Approx(bytes * 3 / 2));
    CHECK(rank_traffic(plan, 0, 0, 0).tp_bytes == 0);
  }
}

TEST_CASE("activations over tp, two ranks of one node each: an all-reduce sends its bytes once") {
  Plan plan = sample_plan();
  plan.layout.tp = 2;
  // Per microbatch: stem, 2 blocks x (down, up), head; and 16 records of 2 pieces.
  CHECK(rank_traffic(plan, 0, 0, 0).tp_bytes == 8 * (6 * mlp_stream + 16 * 16 * 2));
  // Half the lanes on each of two replicas.
  plan.layout.dp = 2;
  CHECK(rank_traffic(plan, 1, 1, 0).tp_bytes == 4 * (6 * mlp_stream + 16 * 16 * 2));

  plan = sample_vit();
  plan.layout.tp = 2;
  // patch, 2 blocks x (proj, down, up, qkv); the head's input has one row a sample.
  CHECK(rank_traffic(plan, 0, 0, 0).tp_bytes == 8 * (9 * vit_stream + mlp_stream + 16 * 16 * 2));
}

TEST_CASE("a rank of P nodes sends P + 1 times its share") {
  Plan plan = sample_plan();
  plan.numerics.shards = 12;
  plan.layout.tp = 2;  // two nodes each: (1 + 2) / 2 of the bytes
  CHECK(rank_traffic(plan, 0, 0, 0).tp_bytes == 8 * (6 * 1.5 * mlp_stream + 16 * 16 * 6));
  plan.layout.tp = 3;  // one node each: (1 + 1) 2/3
  CHECK(rank_traffic(plan, 1, 0, 0).tp_bytes ==
        Approx(8 * (6 * 4.0 / 3 * mlp_stream + 2 * 16 * 16 * 4)));
}

TEST_CASE("sequence parallel moves the same rows, some once more, and what its blocks sum") {
  Plan plan = sample_vit();
  plan.layout.tp = 2;
  const double without = rank_traffic(plan, 0, 0, 0).tp_bytes;
  plan.layout.sequence_parallel = true;
  // In each of 8 microbatches half of the rows to the other rank for the weights' gradients of qkv
  // and up in 2 blocks, and before pooling; in each of 4 lanes 15 vectors of 48 in 64 elements:
  // patch bias, 2 blocks x 6, final norm 2.
  CHECK(rank_traffic(plan, 0, 0, 0).tp_bytes - without ==
        8 * 5 * vit_stream / 2 + 4 * (4.0 * 64 * 15));

  // Uneven rows: 4 blocks of 16 x 4 = 64 rows on three ranks are 16 16 32 rows; what all send in a
  // reduce-scatter and an all-gather of P = 1, 1, 1 is 2 x 2/3 of the rows each on average.
  plan.layout.tp = 3;
  plan.model.patch = 16;
  double sum = 0, even = 0;
  for (index_t rank = 0; rank < 3; ++rank) {
    sum += rank_traffic(plan, rank, 0, 0).tp_bytes;
  }
  // The last rank owns a quarter of the rows more than the first: an all-reduce of B with O owned
  // sends (B - O) + 2 O. 9 of them, and 5 times 2 O as above; and one piece more of the loss'
  // records.
  const double quarter = vit_stream / 16 / 4;
  CHECK(rank_traffic(plan, 2, 0, 0).tp_bytes - rank_traffic(plan, 0, 0, 0).tp_bytes ==
        Approx(8 * (9 * quarter + 5 * 2 * quarter + 2 * 16 * 16)));
  plan.layout.sequence_parallel = false;
  for (index_t rank = 0; rank < 3; ++rank) even += rank_traffic(plan, rank, 0, 0).tp_bytes;
  const double stream = vit_stream / 16;  // 4 tokens
  CHECK(sum - even == Approx(8 * 5 * 2 * stream + 3 * 4 * (4.0 / 3) * (4.0 * 64 * 15)));

  // MLP: up in 2 blocks and the head; 9 vectors: stem bias, 2 blocks x 3, final norm 2.
  plan = sample_plan();
  plan.layout.tp = 2;
  const double mlp_without = rank_traffic(plan, 0, 0, 0).tp_bytes;
  plan.layout.sequence_parallel = true;
  CHECK(rank_traffic(plan, 0, 0, 0).tp_bytes - mlp_without ==
        8 * 3 * mlp_stream / 2 + 4 * (4.0 * 64 * 9));
}

TEST_CASE("boundaries between stages") {
  Plan plan = sample_vit();
  plan.model.layers = 3;
  plan.layout.pp = 3;
  const auto pp_bytes = [&](index_t tp_rank, index_t stage) {
    return rank_traffic(plan, tp_rank, 0, stage).pp_bytes;
  };
  CHECK(pp_bytes(0, 0) == 8 * vit_stream);
  CHECK(pp_bytes(0, 1) == 16 * vit_stream);
  CHECK(pp_bytes(0, 2) == 8 * vit_stream);
  plan.layout.tp = 2;
  CHECK(pp_bytes(1, 0) == 8 * vit_stream);
  plan.layout.sequence_parallel = true;
  CHECK(pp_bytes(1, 0) == 4 * vit_stream);
  plan.layout.dp = 4;
  CHECK(pp_bytes(1, 0) == vit_stream);
}

TEST_CASE("a tied table crosses pp twice a step, and dp once more") {
  Plan plan = sample_gpt();
  plan.model.layers = 3;
  plan.layout.pp = 3;
  constexpr double stream = 4.0 * 16 * 8 * 48, table = 4.0 * 256 * 48;
  const auto pp_bytes = [&](index_t stage) { return rank_traffic(plan, 0, 0, stage).pp_bytes; };
  CHECK(pp_bytes(0) == 8 * stream + table);  // values
  CHECK(pp_bytes(1) == 16 * stream);
  CHECK(pp_bytes(2) == 8 * stream + table);  // gradients
  plan.layout.tp = 2;
  CHECK(pp_bytes(0) == 8 * stream + table / 2);
  plan.layout.tp = 1;
  plan.layout.dp = 2;  // an all-reduce sends its bytes once
  CHECK(pp_bytes(2) == 4 * stream + table);
  const double of_own = 4.0 * static_cast<double>(local_parameters(plan, 0, 2).stored);
  CHECK(rank_traffic(plan, 0, 0, 2).dp_bytes == of_own + table);
  plan.layout.pp = 1;
  CHECK(rank_traffic(plan, 0, 0, 0).pp_bytes == 0);
  CHECK(rank_traffic(plan, 0, 0, 0).dp_bytes ==
        4.0 * static_cast<double>(local_parameters(plan, 0, 0).stored) + table);
  plan.model.tied = false;
  plan.layout.pp = 3;
  CHECK(pp_bytes(0) == 4 * stream);
}

TEST_CASE("each stage crosses tp for its own blocks") {
  Plan plan = sample_vit();
  plan.model.layers = 3;
  plan.layout.tp = 2;
  const double whole = rank_traffic(plan, 0, 0, 0).tp_bytes;
  plan.layout.pp = 3;
  double sum = 0;
  for (index_t stage = 0; stage < 3; ++stage) sum += rank_traffic(plan, 0, 0, stage).tp_bytes;
  CHECK(sum == whole);
  CHECK(rank_traffic(plan, 0, 0, 1).tp_bytes == 8 * 4 * vit_stream);
}
