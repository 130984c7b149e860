// Parameters and bytes by hand, and sums over ranks and stages.
#include <fmt/format.h>
#include <catch2/catch.hpp>

#include <cstdlib>

#include "parallel/data/buckets.hpp"
#include "parallel/plan/memory_model.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_gpt;
using weft::testing::sample_plan;
using weft::testing::sample_vit;

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

TEST_CASE("parameters of a small ViT, by hand") {
  Plan plan = sample_vit();
  plan.model.layers = 1;
  plan.model.hidden = 4;
  plan.model.heads = 4;
  plan.model.patch = 8;
  plan.model.mlp_ratio = 2;
  // patch 4*192+4, position 16*4; block norm1 8, qkv 12*4+12, proj 4*4+4, norm2 8, up 8*4+8, down
  // 4*8+4; final norm 8; head 10*4+10
  const index_t input = 772 + 64, block = 8 + 60 + 20 + 8 + 40 + 36, output = 8 + 50;
  CHECK(num_parameters(plan) == input + block + output);
  plan.model.layers = 3;
  CHECK(num_parameters(plan) == input + 3 * block + output);

  // Names, shapes and cuts as another program sees them.
  plan.model.layers = 1;
  std::string text;
  for (const ParameterShape& shape : parameter_shapes(plan)) {
    text += fmt::format("{} {} {}{}\n", shape.name, shape.global.text(), shape.dim,
                        shape.by_token_blocks ? " blocks" : "");
  }
  CHECK(text ==
        "patch.weight [4, 192] 1\npatch.bias [4] -1 blocks\nposition [16, 4] -1\n"
        "block.0.norm1.gain [4] -1 blocks\nblock.0.norm1.bias [4] -1 blocks\n"
        "block.0.qkv.weight [12, 4] 0\nblock.0.qkv.bias [12] 0\n"
        "block.0.proj.weight [4, 4] 1\nblock.0.proj.bias [4] -1 blocks\n"
        "block.0.norm2.gain [4] -1 blocks\nblock.0.norm2.bias [4] -1 blocks\n"
        "block.0.up.weight [8, 4] 0\nblock.0.up.bias [8] 0\n"
        "block.0.down.weight [4, 8] 1\nblock.0.down.bias [4] -1 blocks\n"
        "final_norm.gain [4] -1 blocks\nfinal_norm.bias [4] -1 blocks\n"
        "head.weight [10, 4] 0\nhead.bias [10] 0\n");
}

TEST_CASE("the stages one after the other are the model") {
  for (Plan plan : {sample_plan(), sample_vit()}) {
    plan.model.layers = 5;
    const auto whole = parameter_shapes(plan);
    for (index_t pp = 1; pp <= 5; ++pp) {
      plan.layout.pp = pp;
      if (pp == 3) plan.layout.stages = {1, 3, 1};
      if (pp != 3) plan.layout.stages.clear();
      std::size_t next = 0;
      index_t sum = 0;
      for (index_t stage = 0; stage < pp; ++stage) {
        for (const ParameterShape& shape : parameter_shapes(plan, stage)) {
          REQUIRE(next < whole.size());
          CHECK(shape.name == whole[next].name);
          CHECK(shape.global == whole[next].global);
          ++next;
        }
        sum += stage_parameters(plan, stage);
      }
      CHECK(next == whole.size());
      CHECK(sum == num_parameters(plan));
    }
  }
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

TEST_CASE("with sequence parallel a rank accumulates its own token blocks alone") {
  Plan plan = sample_vit();
  plan.numerics.shards = 4;
  plan.model.heads = 4;
  plan.layout.tp = 3;  // 1 1 2 blocks
  const index_t whole = rank_memory(plan, 2, 0).gradient_bytes;
  // patch bias, four norms' gain and bias and two biases a block, final norm; not the positions.
  const index_t row = 4 * 64 * (1 + plan.model.layers * (2 + 1 + 2 + 1) + 2);
  plan.layout.sequence_parallel = true;
  CHECK(whole - rank_memory(plan, 2, 0).gradient_bytes == 2 * row);
  CHECK(rank_memory(plan, 0, 0).gradient_bytes ==
        3 * rank_memory(plan, 0, 0).parameter_bytes + row);
}

TEST_CASE("a stage holds its own parameters") {
  Plan plan = sample_vit();
  plan.model.layers = 3;
  plan.layout.pp = 3;
  const index_t block = rank_memory(plan, 0, 0, 1).parameter_bytes;
  // qkv 144x48+144, proj 48x48, up 192x48+192, down 48x192, in 4 pieces each a multiple of 64
  // elements; six vectors of 48 in 64.
  CHECK(block == 4 * (4 * (1728 + 64 + 576 + 2304 + 64 + 2304) + 6 * 64));
  // patch 48x48, its bias, positions 64x48.
  CHECK(rank_memory(plan, 0, 0, 0).parameter_bytes == block + 4 * (4 * 576 + 64 + 64 * 48));
  // final norm 2x64, head 12x48 in 4 pieces of 3 rows (144, so 192), and 4 pieces of bias.
  CHECK(rank_memory(plan, 0, 0, 2).parameter_bytes == block + 4 * (128 + 4 * 192 + 4 * 64));
}

TEST_CASE("a tied table is one parameter, with a copy and a gradient for its second use") {
  Plan plan = sample_gpt();
  REQUIRE(validate(plan, std::nullopt).empty());
  constexpr index_t table = 256 * 48;  // 4 pieces of 64 rows: no pads, no gaps
  Plan untied = plan;
  untied.model.tied = false;
  CHECK(num_parameters(untied) - num_parameters(plan) == table);
  CHECK(checkpoint_bytes(untied) - checkpoint_bytes(plan) == 3 * 4 * table);
  CHECK(parameter_shapes(plan).back().name == "final_norm.bias");
  CHECK(copied_shapes(untied, 0).empty());
  // One stage: no second value. Four lanes of two microbatches, three gradients at once, of either
  // use: as many as of a head of its own.
  CHECK(rank_memory(plan, 0, 0).parameter_bytes ==
        rank_memory(untied, 0, 0).parameter_bytes - 4 * table);
  CHECK(rank_memory(plan, 0, 0).gradient_bytes == rank_memory(untied, 0, 0).gradient_bytes);
  CHECK(rank_memory(plan, 0, 0).optimizer_bytes ==
        rank_memory(untied, 0, 0).optimizer_bytes - 8 * table);
  // The last of two stages: values and gradients as of a head of its own, but no moments.
  plan.layout.pp = untied.layout.pp = 2;
  CHECK(copied_shapes(plan, 0).empty());
  CHECK(rank_memory(plan, 0, 0, 1).parameter_bytes == rank_memory(untied, 0, 0, 1).parameter_bytes);
  CHECK(rank_memory(plan, 0, 0, 1).gradient_bytes == rank_memory(untied, 0, 0, 1).gradient_bytes);
  CHECK(rank_memory(plan, 0, 0, 1).optimizer_bytes ==
        rank_memory(untied, 0, 0, 1).optimizer_bytes - 8 * table);
  CHECK(rank_memory(plan, 0, 0, 0).total_bytes() == rank_memory(untied, 0, 0, 0).total_bytes());
  plan.layout.tp = 2;
  CHECK(local_copies(plan, 1, 1).real == table / 2);
}

TEST_CASE("ZeRO-1 cuts the optimizer's state over dp on norm blocks") {
  Plan plan = sample_vit();
  plan.layout.dp = 3;
  const index_t stored = local_parameters(plan, 0).stored;
  CHECK(optimizer_elements(plan, 0, 1, 0) == stored);
  const RankMemory without = rank_memory(plan, 0, 1);
  plan.layout.zero = 1;
  index_t sum = 0;
  for (index_t rank = 0; rank < 3; ++rank) {
    const index_t mine = optimizer_elements(plan, 0, rank, 0);
    CHECK(std::abs(mine - stored / 3) <= 1024);
    CHECK(rank_memory(plan, 0, rank).optimizer_bytes == 8 * mine);
    sum += mine;
  }
  CHECK(sum == stored);
  CHECK(rank_memory(plan, 0, 1).gradient_bytes == without.gradient_bytes);
  // As the run cuts them.
  std::vector<FlatEntry> entries;
  for (const ParameterShape& shape : parameter_shapes(plan)) {
    entries.push_back({shape.spec(plan, 0),
                       shape.by_token_blocks ? GradientRows::token_blocks : GradientRows::all});
  }
  const auto buckets = make_buckets(flat_layout(entries), plan.comm.bucket_bytes, 3);
  const PlaceMemory place(plan, 0, 0);
  for (int rank = 0; rank < 3; ++rank) {
    CHECK(place.optimizer_elements(rank) == slices_of(buckets, rank).num_elements());
  }
  // More ranks than norm blocks: some keep nothing.
  plan = sample_plan();
  plan.model.hidden = 1;
  plan.numerics.shards = 1;
  plan.numerics.lanes = plan.layout.dp = 16;
  plan.layout.zero = 1;
  sum = 0;
  for (index_t rank = 0; rank < 16; ++rank) sum += optimizer_elements(plan, 0, rank, 0);
  CHECK(sum == local_parameters(plan, 0).stored);
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

TEST_CASE("classes are padded to the pieces in which they are cut") {
  Plan plan = sample_plan();
  plan.numerics.shards = 12;
  CHECK(plan.padded_classes() == 12);
  plan.layout.tp = 5;
  CHECK(plan.padded_classes() == 12);
  // Fast mode: a piece a rank, whatever the shards.
  plan.numerics.mode = NumericsMode::fast;
  CHECK(plan.padded_classes() == 10);
  plan.numerics.shards = 1;
  for (index_t tp = 1; tp <= 24; ++tp) {
    plan.layout.tp = tp;
    const ShardSpec spec = parameter_shapes(plan)[parameter_shapes(plan).size() - 2].spec(plan, 0);
    CHECK(spec.num_shards() == tp);
    for (index_t piece = 0; piece < tp; ++piece)
      CHECK(spec.piece(piece).size() == plan.padded_classes() / tp);
  }
}
