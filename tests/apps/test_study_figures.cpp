// Layouts as a study of scaling, with the figures of the course's sections 4 and 5.
#include <catch2/catch.hpp>

#include <sstream>

#include "apps/study_figures.hpp"
#include "apps/weak_scaling.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;

namespace {

LayoutRun run_of(const std::vector<double>& step_ms, double samples) {
  LayoutRun run;
  for (const double ms : step_ms) run.steps.add(ms, samples);
  run.state_hash = {1, 2};
  run.loss_hash = {3, 4};
  return run;
}

LayoutRow row_of(LayoutTable& table, const std::string& name, index_t dp, index_t pp, index_t batch,
                 const std::vector<LayoutRun>& runs) {
  LayoutRow row{{table.plan, name}};
  row.layout.plan.layout.dp = dp;
  row.layout.plan.layout.pp = pp;
  row.layout.plan.batch.global = batch;
  row.runs = runs;
  return row;
}

// "One device 84 ms, four devices 40 ms, batch 128": and a repeat that took 42.
LayoutTable course_table() {
  LayoutTable table;
  table.plan = sample_plan();
  table.num_ranks = 4;
  table.rows = {row_of(table, "one", 1, 1, 128, {run_of({84, 84, 84}, 128)}),
                row_of(table, "four", 4, 1, 128, {run_of({40, 40, 40}, 128), run_of({42}, 128)}),
                row_of(table, "weak", 4, 1, 512, {run_of({90}, 512)}),
                row_of(table, "neither", 2, 1, 384, {run_of({100}, 384)})};
  table.rows[2].runs[0].state_hash = {5, 6};  // another batch has other bits
  return table;
}

std::string scaling_text(const LayoutTable& table) {
  std::ostringstream text;
  print_scaling(table, text);
  return text.str();
}

}  // namespace

TEST_CASE("strong and weak scaling are told apart", "[study_figures]") {
  const LayoutTable table = course_table();
  const auto of = [&](std::size_t i) { return study_figures(table, table.rows[i]); };
  CHECK(of(0).scaling == RowScaling::baseline);
  CHECK(of(1).scaling == RowScaling::strong);
  CHECK(of(2).scaling == RowScaling::weak);
  CHECK(of(3).scaling == RowScaling::other);
  CHECK(of(1).updates == 1);
  CHECK(of(2).updates == 0.25);  // 128 to 512: "about a quarter of the updates"
  // S = 84 / 40 = 2.1, E = 52.5 %; with four times the batch in 90 ms 4 x 84 / 90.
  CHECK(table.figures(table.rows[1]).speed_up == 2.1);
  CHECK(table.figures(table.rows[1]).efficiency == 0.525);
  CHECK(table.figures(table.rows[2]).speed_up == Approx(4 * 84.0 / 90));
  CHECK(table.figures(table.rows[2]).efficiency == Approx(84.0 / 90));
}

TEST_CASE("device-seconds of a step, and repeats with their spread", "[study_figures]") {
  const LayoutTable table = course_table();
  CHECK(study_figures(table, table.rows[0]).device_s_per_step == 0.084);
  const StudyFigures four = study_figures(table, table.rows[1]);
  CHECK(four.device_s_per_step == 0.160);
  CHECK(four.least_ms == 40);
  CHECK(four.greatest_ms == 42);
}

TEST_CASE("the ideal busy share stands beside the measured one", "[study_figures]") {
  LayoutTable table = course_table();
  // Four stages; 2 lanes of 2 microbatches a replica make m = 4 of sample_plan's 128 = 16 x 2 x 4.
  table.rows.push_back(row_of(table, "stages", 2, 4, 128, {run_of({50}, 128)}));
  LayoutRun& run = table.rows.back().runs[0];
  const auto set = [&](Activity which, double part) {
    run.activities[static_cast<std::size_t>(which)] = part;
  };
  set(Activity::forward, 0.15);
  set(Activity::backward, 0.30);
  set(Activity::bubble, 0.30);
  set(Activity::communication, 0.15);
  set(Activity::update, 0.10);
  const StudyFigures figures = study_figures(table, table.rows.back());
  CHECK(std::round(1000 * figures.ideal_busy) == 571);  // "p = 4, m = 4: about 57.1 %"
  CHECK(figures.measured_busy == Approx(0.5));
  CHECK(study_figures(table, table.rows[0]).ideal_busy == 1);
}

TEST_CASE("bits are compared between layouts of equal batch", "[study_figures]") {
  LayoutTable table = course_table();
  CHECK(table.same_bits());
  CHECK(verdict_text(table) == "same bits on all layouts of equal batch, of 4 layouts");
  table.rows.push_back(table.rows[2]);
  table.rows.back().layout.name = "weak again";
  CHECK(table.same_bits());
  table.rows.back().runs[0].loss_hash.low ^= 1;
  CHECK(table.differing() == std::vector<std::string>{"weak again"});
  CHECK(verdict_text(table).find("the first layout with the same batch: weak again. In exact") !=
        std::string::npos);
}

TEST_CASE("a model is accepted by the plan's bounds, both of them", "[study_figures]") {
  TargetPlan accept{.metric = "accuracy", .at_least = 0.6, .at_most = std::nullopt};
  CHECK(is_within(accept, 0.6));
  CHECK_FALSE(is_within(accept, 0.59));
  accept.at_most = 0.7;
  CHECK(is_within(accept, 0.7));
  CHECK_FALSE(is_within(accept, 0.71));
  CHECK_FALSE(is_within({.metric = "loss", .at_least = std::nullopt, .at_most = 1.0}, 1.1));

  LayoutTable table = course_table();
  CHECK(acceptance_json(table).is_null());
  table.plan.task.accept = {.metric = "accuracy", .at_least = 0.6, .at_most = std::nullopt};
  CHECK(acceptance_json(table)["all_accepted"].is_null());
  CHECK(scaling_text(table).find("accepted (accuracy on validation of at least 0.6): not judged; "
                                 "give --evaluate") != std::string::npos);
  for (LayoutRow& row : table.rows) row.runs[0].metrics = {{"accuracy", 0.61}, {"loss", 1.0}};
  CHECK(acceptance_json(table)["all_accepted"] == true);
  CHECK(scaling_text(table).find("0.6100 yes\n") != std::string::npos);
  table.rows[3].runs[0].metrics["accuracy"] = 0.5;
  CHECK(acceptance_json(table)["all_accepted"] == false);
  CHECK(scaling_json(table, table.rows[3])["accepted"] == false);
  CHECK(scaling_json(table, table.rows[3])["validation"]["accuracy"] == 0.5);
  CHECK(scaling_text(table).find("0.5000 NO\n") != std::string::npos);
  table.rows[3].runs[0].metrics["accuracy"] = nullptr;  // 0 / 0
  CHECK_FALSE(study_figures(table, table.rows[3]).metric);
  CHECK(acceptance_json(table)["all_accepted"].is_null());

  table.plan.task.accept.split = "test";
  CHECK_FALSE(study_figures(table, table.rows[0]).metric);
  CHECK(scaling_text(table).find("the test part is for weft eval") != std::string::npos);
}

TEST_CASE("a baseline of several ranks is said to be one", "[study_figures]") {
  LayoutTable table = course_table();
  CHECK(scaling_text(table).find("single device") == std::string::npos);
  table.rows.erase(table.rows.begin());
  CHECK(scaling_text(table).find("the baseline has 2 ranks: no speed-up here is against a single "
                                 "device") != std::string::npos);
}

TEST_CASE("the text of scaling fits 120 columns", "[study_figures]") {
  LayoutTable table = course_table();
  table.plan.task.accept = {.metric = "accuracy", .at_least = 0.6, .at_most = std::nullopt};
  for (LayoutRow& row : table.rows) row.runs[0].metrics = {{"accuracy", 0.61}};
  table.rows[1].layout.name = "tp=2 dp=2 pp=2 zero=1 1f1b sp mpi";
  std::istringstream lines(scaling_text(table));
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 120);
    CHECK_FALSE(line.ends_with(' '));
  }
}

TEST_CASE("weak scaling grows the batch with the replicas, where that is legal",
          "[study_figures]") {
  GridLayouts grid = layouts_of(sample_plan(), parse_grid("dp=1,2,4 tp=1,2"), 8, {"mpi"});
  scale_weakly(grid);
  REQUIRE(grid.to_run.size() == 6);
  for (const GridLayout& layout : grid.to_run) {
    const Plan& plan = layout.plan;
    INFO(layout.name);
    CHECK(plan.batch.global == 128 * plan.layout.dp);
    // Each replica does as many microbatches as the only one did: 4 lanes x 2.
    CHECK(plan.microbatches_of(0) == 8);
    CHECK((layout.name.find(" batch=") != std::string::npos) == (plan.layout.dp > 1));
  }
  Plan small = sample_plan();
  small.task.train = 200;  // a global batch of 256 is more than there is
  GridLayouts few = layouts_of(small, parse_grid("dp=1,2"), 8, {"mpi"});
  scale_weakly(few);
  CHECK(few.to_run.size() == 1);
  REQUIRE(few.skipped.size() == 1);
  CHECK(few.skipped[0].name == "tp=1 dp=2 pp=1 batch=256");
}
