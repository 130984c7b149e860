// Skipped steps and resuming: the run that was saved between skips, and goes on elsewhere, is the
// run that was not, and its limit of skips in a row counts those before the save.
#include <catch2/catch.hpp>

#include <limits>
#include <sstream>

#include "apps/ckpt_command.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"
#include "tests/apps/poison.hpp"
#include "tests/apps/resume_run.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;
using Catch::Contains;

namespace {

const ResumeData& data() {
  static const ResumeData small;
  return small;
}

Plan on(index_t tp, index_t dp, index_t pp, index_t zero) {
  Plan plan = small_vit(4);
  plan.integrity.on_nonfinite = "skip";
  plan.integrity.max_skips = 2;
  plan.layout.tp = tp;
  plan.layout.dp = dp;
  plan.layout.pp = pp;
  plan.layout.zero = zero;
  return plan;
}

// The steps after `begin` done ones are spoiled, until `end` are done.
class Spoiled {
 public:
  Spoiled(index_t begin, index_t end) : begin_(begin), end_(end) {}
  std::function<void(Trainer&)> after_step() {
    return [this](Trainer& trainer) {
      if (trainer.steps_done() == begin_) poison_.put(trainer);
      if (trainer.steps_done() == end_) poison_.take_away(trainer);
    };
  }

 private:
  index_t begin_, end_;
  Poison poison_{"head.bias", 2, std::numeric_limits<float>::infinity()};
};

}  // namespace

TEST_CASE("a run that skipped goes on from its checkpoint to the same bits",
          "[nonfinite][resume]") {
  const TemporaryFolder folder;
  // Steps 3 and 4 are skipped, then 7.
  Spoiled first(2, 4);
  const PartResult begun = run_part(on(2, 1, 2, 0), data(),
                                    {.run_folder = folder.path() + "/a",
                                     .until = 5,
                                     .saves = {4},
                                     .after_step = first.after_step()});
  REQUIRE(begun.error == "");
  Spoiled second(6, 7);
  const PartResult resumed = run_part(on(1, 4, 1, 1), data(),
                                      {.run_folder = folder.path() + "/a",
                                       .resume = ResumeOptions{"auto", false, false},
                                       .until = 9,
                                       .after_step = second.after_step()});
  INFO(resumed.error);
  REQUIRE(resumed.first_step == 4);

  Spoiled one(2, 4), two(6, 7);
  const PartResult whole = run_part(
      on(2, 2, 1, 1), data(),
      {.run_folder = folder.path() + "/b", .until = 9, .after_step = [&](Trainer& trainer) {
         one.after_step()(trainer);
         two.after_step()(trainer);
       }});
  REQUIRE(whole.error == "");
  std::vector<index_t> skipped;
  for (const StepResult& step : whole.steps)
    if (!step.skipped.empty()) skipped.push_back(step.step + 1);
  CHECK(skipped == std::vector<index_t>{3, 4, 7});
  CHECK(resumed.state_hash == whole.state_hash);
  CHECK(resumed.loss_hash == whole.loss_hash);

  // Losses that are not numbers are equal where their bits are.
  const std::string saved = folder.path() + "/a/checkpoints/" + step_folder_name(4);
  std::ostringstream text, out;
  CHECK(ckpt_diff({.path = saved, .other = saved}, text, out) == 0);
}

TEST_CASE("while steps are skipped no checkpoint takes the place of a sound one",
          "[nonfinite][resume]") {
  const TemporaryFolder folder;
  Plan plan = on(1, 2, 1, 0);
  plan.checkpoint = {.every_steps = 1, .keep = 2};
  const std::string run_folder = folder.path() + "/a";
  Spoiled never_healed(2, 100);
  const PartResult ended =
      run_part(plan, data(),
               {.run_folder = run_folder, .until = 9, .after_step = never_healed.after_step()});
  CHECK_THAT(ended.error, Contains("step 5: ") && Contains("3 such steps in a row"));
  std::vector<index_t> kept;
  for (const CheckpointPlace& place : list_checkpoints(run_folder + "/checkpoints"))
    kept.push_back(place.step);
  CHECK(kept == std::vector<index_t>{2, 1});
}

TEST_CASE("skips in a row count over a resume", "[nonfinite][resume]") {
  const TemporaryFolder folder;
  const std::string run_folder = folder.path() + "/a";
  Spoiled never_healed(2, 100);  // the checkpoint has what spoils the steps, bit for bit
  const PartResult begun = run_part(on(1, 2, 1, 0), data(),
                                    {.run_folder = run_folder,
                                     .until = 4,
                                     .saves = {4},
                                     .after_step = never_healed.after_step()});
  REQUIRE(begun.error == "");
  const PartResult resumed = run_part(
      on(2, 1, 2, 0), data(),
      {.run_folder = run_folder, .resume = ResumeOptions{"auto", false, false}, .until = 6});
  CHECK_THAT(resumed.error,
             Contains("step 5: ") && Contains("3 such steps in a row") &&
                 Contains("the parameter head.bias itself, before the step, on rank 2 "));
  CHECK(resumed.exit_code == 1);
}
