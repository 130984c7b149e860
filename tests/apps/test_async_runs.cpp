// Runs that save while they go on: the same bits as runs that wait for each save, the same
// checkpoints, on several layouts; and resumed from each of them.
#include <catch2/catch.hpp>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/checkpoint/checkpoint_diff.hpp"
#include "io/checkpoint/verify.hpp"
#include "tests/apps/resume_run.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace {

struct Layout {
  index_t tp, dp, pp, zero;
};

Plan plan_of(const Layout& layout, bool async) {
  Plan plan = small_vit(4);
  plan.run.steps = 5;
  plan.layout.tp = layout.tp;
  plan.layout.dp = layout.dp;
  plan.layout.pp = layout.pp;
  plan.layout.zero = layout.zero;
  plan.checkpoint.every_steps = 2;
  plan.checkpoint.keep = 10;
  plan.checkpoint.async = async;
  for (const PlanFault& fault : validate(plan, plan.num_ranks()))
    FAIL(fault.key + ": " + fault.message);
  return plan;
}

bool are_equal(const std::string& a, const std::string& b) {
  const Checkpoint one = open_checkpoint(a), other = open_checkpoint(b);
  const auto all = diff_checkpoints(one, other);
  return !all.empty() && one.index.progress == other.index.progress &&
         std::all_of(all.begin(), all.end(), [](const TensorDifference& tensor) {
           return tensor.difference == TensorDifference::Kind::equal;
         });
}

std::string checkpoint_of(const TemporaryFolder& run, index_t step) {
  return run.path() + "/checkpoints/" + step_folder_name(step);
}

}  // namespace

TEST_CASE("saving meanwhile changes no bit, of the run or of its checkpoints", "[async]") {
  const ResumeData data;
  const TemporaryFolder reference;
  std::filesystem::create_directories(reference.path() + "/checkpoints");
  const PartResult awaited =
      run_part(plan_of({1, 1, 1, 0}, false), data, {.run_folder = reference.path(), .until = 5});
  REQUIRE(awaited.exit_code == 0);
  for (const Layout& layout :
       {Layout{1, 1, 1, 0}, {2, 1, 1, 0}, {1, 2, 1, 1}, {1, 1, 2, 0}, {2, 2, 1, 1}}) {
    const Plan plan = plan_of(layout, true);
    INFO("tp " << layout.tp << ", dp " << layout.dp << ", pp " << layout.pp);
    const TemporaryFolder run;
    std::filesystem::create_directories(run.path() + "/checkpoints");
    const PartResult result = run_part(plan, data, {.run_folder = run.path(), .until = 5});
    REQUIRE(result.error == "");
    CHECK(result.state_hash == awaited.state_hash);
    CHECK(result.loss_hash == awaited.loss_hash);
    const auto saving = nlohmann::json::parse(result.saving);
    CHECK(saving["async"] == true);
    CHECK(saving["saved"] == 3);
    CHECK(saving["failed"] == 0);
    CHECK(saving["last_step"] == 5);
    CHECK(saving["background_s"] > 0.0);
    // Copies and waits are parts of what steps waited for.
    CHECK(saving["staged_s"] > 0.0);
    CHECK(saving["staged_s"].get<double>() + saving["waited_s"].get<double>() <=
          saving["blocked_s"].get<double>());
    for (const index_t step : {2, 4, 5}) {
      INFO("checkpoint of step " << step);
      CHECK(are_equal(checkpoint_of(run, step), checkpoint_of(reference, step)));
    }
    // And on from the first of them, on one rank that waits for its saves.
    const PartResult resumed =
        run_part(plan_of({1, 1, 1, 0}, false), data,
                 {.run_folder = run.path(), .resume = ResumeOptions{.from = "2"}, .until = 5});
    REQUIRE(resumed.error == "");
    CHECK(resumed.first_step == 2);
    CHECK(resumed.state_hash == awaited.state_hash);
    CHECK(resumed.loss_hash == awaited.loss_hash);
  }
}
