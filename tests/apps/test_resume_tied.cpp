// A generator with a tied table goes on in other stages as if nothing had been: a checkpoint has
// the table once, whoever wrote it, and the last stage's copy is made of what was read.
#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

#include "apps/ckpt_exchange_command.hpp"
#include "apps/ckpt_reshard_command.hpp"
#include "apps/model_shards.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/file.hpp"
#include "io/plan_file.hpp"
#include "tests/apps/resume_run.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

constexpr index_t num_steps = 9;

Plan tied_plan() {
  Plan plan = small_gpt(4);
  plan.model.layers = 3;
  plan.model.dropout = 0.1;
  plan.run.steps = num_steps;
  return plan;
}

const ResumeOptions automatic{"auto", false, false};

PartResult undisturbed() {
  const TemporaryFolder folder;
  return run_part(tied_plan(), small_text(), {.run_folder = folder.path(), .until = num_steps});
}

std::string checkpoint_path(const TemporaryFolder& run, index_t step) {
  return run.path() + "/checkpoints/" + step_folder_name(step);
}

}  // namespace

TEST_CASE("a tied model goes on in other stages", "[resume][tied]") {
  const PartResult whole = undisturbed();
  const Plan plan = tied_plan();
  const SmallLayout layouts[] = {{2, 1, 1}, {1, 2, 3, 1}, {2, 2, 2, 1}, {1, 1, 2}, {1, 4, 1, 1}};
  for (std::size_t i = 0; i < std::size(layouts); ++i) {
    const auto layout = [&](std::size_t k) {
      return on_layout(plan, layouts[(i + k) % std::size(layouts)]);
    };
    INFO("from layout " << i);
    const TemporaryFolder folder;
    run_part(layout(0), small_text(), {.run_folder = folder.path(), .until = 4, .saves = {3}});
    const PartResult two =
        run_part(layout(1), small_text(),
                 {.run_folder = folder.path(), .resume = automatic, .until = 6, .saves = {5}});
    const PartResult three =
        run_part(layout(2), small_text(),
                 {.run_folder = folder.path(), .resume = automatic, .until = num_steps});
    CHECK(two.first_step == 3);
    CHECK(three.first_step == 5);
    CHECK(three.loss_hash == whole.loss_hash);
    CHECK(three.state_hash == whole.state_hash);
  }
}

TEST_CASE("a tied model's checkpoint, cut anew without ranks, goes on", "[resume][tied]") {
  const PartResult whole = undisturbed();
  const TemporaryFolder one, other;
  run_part(on_layout(tied_plan(), {2, 1, 2}), small_text(),
           {.run_folder = one.path(), .until = 4, .saves = {4}});
  const Checkpoint saved = open_checkpoint(checkpoint_path(one, 4));
  const auto count = [&](const std::string& name) {
    return std::count_if(saved.index.tensors.begin(), saved.index.tensors.end(),
                         [&](const TensorRecord& t) { return t.name == name; });
  };
  CHECK(count("embedding.weight") == 3);  // the value and two moments
  CHECK(count("head.weight") == 0);

  std::ostringstream text;
  std::filesystem::create_directories(other.path() + "/checkpoints");
  ckpt_reshard({.path = saved.path,
                .to = checkpoint_path(other, 4),
                .overrides = {"layout.tp=1", "layout.pp=3", "layout.dp=2", "layout.zero=1"}},
               text, text);
  const PartResult rest =
      run_part(on_layout(tied_plan(), {1, 2, 3, 1}), small_text(),
               {.run_folder = other.path(), .resume = automatic, .until = num_steps});
  CHECK(rest.first_step == 4);
  CHECK(rest.loss_hash == whole.loss_hash);
  CHECK(rest.state_hash == whole.state_hash);
}

TEST_CASE("exported and imported parameters of a tied model are what was saved", "[resume][tied]") {
  const TemporaryFolder run, imported;
  run_part(on_layout(tied_plan(), {1, 2, 2}), small_text(),
           {.run_folder = run.path(), .until = 3, .saves = {3}});
  std::ostringstream text;
  const std::string file = run.path() + "/model.safetensors", plan_path = run.path() + "/plan.toml";
  ckpt_export({.path = checkpoint_path(run, 3), .format = "safetensors", .to = file}, text, text);
  write_file(plan_path, to_toml(on_layout(tied_plan(), {2, 1, 3})));
  std::filesystem::create_directories(imported.path() + "/checkpoints");
  ckpt_import({.path = file, .plan_path = plan_path, .to = checkpoint_path(imported, 0)}, text,
              text);
  const Checkpoint before = open_checkpoint(checkpoint_path(run, 3));
  const Checkpoint after = open_checkpoint(checkpoint_path(imported, 0));
  REQUIRE(after.index.tensors.size() == before.index.tensors.size());
  for (std::size_t i = 0; i < after.index.tensors.size(); ++i) {
    const TensorRecord &a = after.index.tensors[i], &b = before.index.tensors[i];
    INFO(a.name << " " << a.kind);
    CHECK(a.name == b.name);
    CHECK((a.kind != "value" || a.fingerprint == b.fingerprint));
  }
  // A model with a head of its own finds none in the file.
  CHECK_THROWS_WITH(ckpt_import({.path = file,
                                 .plan_path = plan_path,
                                 .overrides = {"model.tied=false"},
                                 .to = checkpoint_path(imported, 1)},
                                text, text),
                    Catch::Contains("head.weight"));
}
