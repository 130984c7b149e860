// One set of bits for every layout (ranks as threads): tensor, data and pipeline parallel, ZeRO,
// sequence parallel, schedules, stages, orders of ranks, buckets, threads. Layouts are chosen so
// that each pair of choices meets somewhere; the full product would take days.
#include <catch2/catch.hpp>

#include <algorithm>

#include "tests/apps/training_run.hpp"
#include "tests/layers/rank_group.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

constexpr index_t kib = 1024;
constexpr index_t odd = 5003;  // bytes: 1250 elements, a norm block and no more
constexpr bool on = true;
// Under a sanitizer a run takes many times as long: the last layout of each list alone.
#ifdef WEFT_SANITIZED
constexpr bool last_alone = true;
#else
constexpr bool last_alone = false;
#endif

struct Layout {
  index_t tp = 1, dp = 1, pp = 1;
  index_t zero = 0;
  bool sequence_parallel = false;
  std::string schedule = "1f1b";
  std::vector<index_t> stages = {};
  std::string order = "tp,dp,pp";
  index_t bucket_bytes = index_t{4} << 20;
  index_t threads = 1;
};

Plan with_layout(Plan plan, const Layout& layout) {
  plan.layout = {.tp = layout.tp,
                 .dp = layout.dp,
                 .pp = layout.pp,
                 .zero = layout.zero,
                 .schedule = layout.schedule,
                 .sequence_parallel = layout.sequence_parallel,
                 .stages = layout.stages,
                 .threads = layout.threads,
                 .order = layout.order};
  plan.comm.bucket_bytes = layout.bucket_bytes;
  return plan;
}

// Three steps, the last of them with a padded batch, and an evaluation.
TrainingRun short_run(const Plan& plan) {
  return train(plan, small_data(), {.num_steps = 3, .evaluate = true});
}

// Every layout against one rank with one thread. Clipping and a padded batch are at work.
void check_layouts(const Plan& plan, std::vector<Layout> layouts) {
  const TrainingRun base = short_run(plan);
  REQUIRE(base.steps.back().num_real < plan.batch.global);
  REQUIRE(std::any_of(base.steps.begin(), base.steps.end(), [&](const StepResult& step) {
    return step.gradient_norm > plan.optimizer.clip_norm;
  }));
  if (last_alone) layouts.erase(layouts.begin(), layouts.end() - 1);
  for (const int threads : several_threads()) layouts.push_back({.threads = threads});
  for (const Layout& layout : layouts) {
    const Plan here = with_layout(plan, layout);
    INFO(text_of(here));
    check_equal(short_run(here), base);
  }
}

// A global batch of 72, so that the third step of 150 samples has 6 real ones.
Plan layout_plan(Plan plan, index_t shards, index_t lanes, index_t microbatches_per_lane) {
  plan.numerics.shards = shards;
  plan.numerics.lanes = lanes;
  plan.batch.global = 72;
  plan.batch.micro = 72 / (lanes * microbatches_per_lane);
  plan.model.dropout = 0.1;
  plan.model.layers = 3;
  plan.optimizer.clip_norm = 0.5;
  plan.run.steps = 3;
  return plan;
}

Plan mlp(index_t shards, index_t lanes, index_t microbatches_per_lane) {
  return layout_plan(small_plan(4), shards, lanes, microbatches_per_lane);
}

Plan vit(index_t shards, index_t lanes, index_t microbatches_per_lane) {
  return layout_plan(small_vit(4), shards, lanes, microbatches_per_lane);
}

void use_sgd(Plan& plan) {
  plan.optimizer.kind = "sgd";
  plan.optimizer.momentum = 0.9;
  plan.optimizer.schedule = {.kind = "cosine", .warmup_steps = 1, .final_fraction = 0.1};
}

}  // namespace

TEST_CASE("one set of bits: MLP, three microbatches a lane", "[trainer][layouts]") {
  Plan plan = mlp(4, 4, 3);
  plan.model.layers = 4;
  check_layouts(
      plan, {{.tp = 2},
             {.tp = 3, .pp = 2, .sequence_parallel = on, .stages = {1, 3}},
             {.tp = 4, .dp = 2, .zero = 1, .sequence_parallel = on, .bucket_bytes = odd},
             {.dp = 2, .zero = 1, .bucket_bytes = kib},
             {.dp = 3, .pp = 2, .zero = 1, .schedule = "gpipe", .order = "pp,dp,tp"},
             {.tp = 2, .dp = 4, .order = "dp,tp,pp", .bucket_bytes = kib},
             {.pp = 4, .schedule = "gpipe"},
             {.tp = 2, .pp = 3, .schedule = "gpipe", .stages = {2, 1, 1}, .order = "pp,tp,dp"},
             {.tp = 2, .dp = 2, .pp = 2, .zero = 1, .sequence_parallel = on, .order = "dp,pp,tp"},
             {.tp = 1, .dp = 4, .pp = 3, .zero = 1, .stages = {1, 1, 2}, .bucket_bytes = odd}});
}

TEST_CASE("one set of bits: transformer, one microbatch a lane", "[trainer][layouts]") {
  check_layouts(
      vit(4, 4, 1),
      {{.tp = 4},
       {.tp = 3, .sequence_parallel = on},
       {.dp = 4, .zero = 1, .bucket_bytes = odd},
       {.pp = 3},
       {.tp = 2, .dp = 3, .sequence_parallel = on, .order = "dp,tp,pp", .bucket_bytes = kib},
       {.tp = 2, .pp = 2, .sequence_parallel = on, .schedule = "gpipe", .stages = {2, 1}},
       {.dp = 2, .pp = 2, .zero = 1, .stages = {1, 2}, .order = "pp,dp,tp"},
       {.tp = 4, .dp = 2, .zero = 1, .bucket_bytes = kib},
       {.tp = 3, .dp = 2, .pp = 2, .zero = 1, .sequence_parallel = on, .bucket_bytes = odd},
       {.tp = 2, .dp = 2, .pp = 3, .zero = 1, .schedule = "gpipe", .order = "pp,tp,dp"}});
}

TEST_CASE("one set of bits: transformer, three microbatches a lane", "[trainer][layouts]") {
  check_layouts(vit(4, 4, 3), {{.tp = 3, .pp = 3, .sequence_parallel = on, .schedule = "gpipe"},
                               {.dp = 3, .pp = 3, .bucket_bytes = kib},
                               {.dp = 4, .pp = 2, .zero = 1, .stages = {2, 1}},
                               {.tp = 4, .dp = 1, .pp = 2, .order = "pp,tp,dp"},
                               {.tp = 2, .dp = 2, .zero = 1, .sequence_parallel = on}});
}

// Also: fewer rows than token blocks (2 or 8 of 12), so that some ranks own no row.
TEST_CASE("one set of bits: twelve shards and lanes", "[trainer][layouts]") {
  check_layouts(mlp(12, 12, 3),
                {{.tp = 12, .sequence_parallel = on},
                 {.dp = 12, .zero = 1, .bucket_bytes = kib},
                 {.tp = 5, .dp = 2, .zero = 1, .sequence_parallel = on, .bucket_bytes = odd},
                 {.tp = 2, .dp = 5, .order = "dp,tp,pp"},
                 {.tp = 3, .pp = 3, .schedule = "gpipe"}});
  check_layouts(vit(12, 12, 3),
                {{.tp = 12, .sequence_parallel = on},
                 {.tp = 5, .pp = 2, .sequence_parallel = on, .stages = {1, 2}},
                 {.dp = 5, .pp = 2, .zero = 1, .schedule = "gpipe", .bucket_bytes = odd},
                 {.tp = 3, .dp = 4, .zero = 1}});
}

TEST_CASE("one set of bits: shards and lanes that differ", "[trainer][layouts]") {
  check_layouts(vit(2, 6, 2), {{.tp = 2, .dp = 4, .zero = 1, .sequence_parallel = on},
                               {.dp = 5, .pp = 2, .zero = 1, .bucket_bytes = kib}});
  check_layouts(mlp(6, 3, 4), {{.tp = 4, .dp = 3, .zero = 1, .sequence_parallel = on},
                               {.tp = 5, .dp = 2, .bucket_bytes = kib}});
  check_layouts(vit(1, 1, 4), {{.pp = 3}, {.pp = 2, .schedule = "gpipe"}});
}

TEST_CASE("one set of bits: SGD with momentum and a schedule", "[trainer][layouts]") {
  for (Plan plan : {mlp(4, 4, 1), vit(4, 4, 3)}) {
    use_sgd(plan);
    check_layouts(plan, {{.tp = 4, .sequence_parallel = on},
                         {.dp = 3, .zero = 1, .bucket_bytes = odd},
                         {.dp = 2, .pp = 3, .schedule = "gpipe", .order = "pp,dp,tp"},
                         {.tp = 2, .dp = 2, .pp = 2, .zero = 1, .sequence_parallel = on}});
  }
}

TEST_CASE("one evaluation on every layout: both splits, replicas without a microbatch",
          "[trainer][layouts]") {
  // 34 and 40 samples in microbatches of 18: two and three, the last of them padded.
  const Plan plan = vit(4, 4, 1);
  REQUIRE(plan.batch.micro == 18);
  for (const auto& [split, samples] :
       {std::pair{EvalSplit::validation, 34}, std::pair{EvalSplit::test, 40}}) {
    const RunOptions options{.num_steps = 1, .evaluate = true, .split = split};
    const TrainingRun base = train(plan, small_data(), options);
    CHECK(base.evaluation.samples == samples);
    CHECK(base.evaluation.confusion.num_samples() == samples);
    std::vector<std::int64_t> labels(10);  // from the files
    const Split& parts = small_data().split();
    for (const index_t i : split == EvalSplit::test ? parts.test : parts.validation) {
      std::int32_t label = -1;
      small_data().samples().read(i, std::nullopt, {.labels = &label});
      ++labels[static_cast<std::size_t>(label)];
    }
    for (index_t c = 0; c < 10; ++c)
      CHECK(base.evaluation.confusion.support(c) == labels[static_cast<std::size_t>(c)]);
    for (const Layout& layout :
         std::vector<Layout>{{.dp = 4}, {.tp = 2, .dp = 3, .pp = 2}, {.tp = 4, .pp = 3}}) {
      const Plan here = with_layout(plan, layout);
      INFO(text_of(here));
      check_equal(train(here, small_data(), options), base);
    }
  }
}
