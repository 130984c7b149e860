// A run in length buckets goes on in the middle of an epoch on other layouts as if nothing had
// been: how long a batch is follows from its step, and nothing of it is saved.
#include <catch2/catch.hpp>

#include "tests/apps/resume_run.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

TEST_CASE("a run in length buckets goes on on other layouts", "[resume][buckets]") {
  // Epochs of nine batches and a padded one.
  constexpr index_t num_steps = 17;
  Plan plan = small_bucketed_encoder(4);
  plan.model.layers = 3;
  plan.model.dropout = 0.1;
  plan.run.steps = num_steps;
  REQUIRE(plan.steps_per_epoch() == 10);
  const ResumeOptions automatic{"auto", false, false};
  const TemporaryFolder undisturbed;
  const PartResult whole =
      run_part(plan, data_of(plan), {.run_folder = undisturbed.path(), .until = num_steps});
  const SmallLayout layouts[] = {
      {2, 1, 1, 0, true}, {1, 2, 3, 1}, {2, 2, 2, 1, true, "gpipe"}, {1, 1, 2}, {4, 2, 1, 1}};
  for (std::size_t i = 0; i < std::size(layouts); ++i) {
    const auto layout = [&](std::size_t k) {
      return on_layout(plan, layouts[(i + k) % std::size(layouts)]);
    };
    INFO("from layout " << i);
    const TemporaryFolder folder;
    const PartResult one =
        run_part(layout(0), data_of(plan), {.run_folder = folder.path(), .until = 5, .saves = {4}});
    const PartResult two =
        run_part(layout(1), data_of(plan),
                 {.run_folder = folder.path(), .resume = automatic, .until = 14, .saves = {13}});
    const PartResult three =
        run_part(layout(2), data_of(plan),
                 {.run_folder = folder.path(), .resume = automatic, .until = num_steps});
    CHECK(two.first_step == 4);
    CHECK(three.first_step == 13);
    CHECK(three.loss_hash == whole.loss_hash);
    CHECK(three.state_hash == whole.state_hash);
    index_t samples = 0;
    for (std::size_t step = 0; step < 10; ++step)
      samples += (step < 4 ? one.steps[step] : two.steps[step - 4]).num_real;
    CHECK(samples == 150);
  }
}
