// The table of `weft layouts`: figures by hand, and a verdict that no differing bit escapes.
#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "apps/layout_table.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;

namespace {

LayoutRun run_of(const std::vector<double>& step_ms, double samples) {
  LayoutRun run;
  for (const double ms : step_ms) run.steps.add(ms, samples);
  run.state_hash = {1, 2};
  run.loss_hash = {3, 4};
  return run;
}

std::array<double, num_activities> activities(double forward, double communication, double bubble) {
  std::array<double, num_activities> parts{};
  parts[static_cast<std::size_t>(Activity::forward)] = forward;
  parts[static_cast<std::size_t>(Activity::communication)] = communication;
  parts[static_cast<std::size_t>(Activity::bubble)] = bubble;
  return parts;
}

// Four ranks first, so that the reference is not the first row; two repeats.
LayoutTable sample_table() {
  LayoutTable table;
  table.plan = weft::testing::sample_plan();
  table.num_ranks = 4;
  table.num_repeats = 2;
  table.num_warm_up = 2;
  table.grid = layouts_of(table.plan, parse_grid("dp=2,1 pp=2,1 tp=1,8 zero=1 transport=mpi"), 4,
                          {"mpi", "local"});
  for (const GridLayout& layout : table.grid.to_run) {
    LayoutRow row{layout};
    const auto ranks = static_cast<double>(row.num_ranks());
    // On one rank 40, 60 and 100 ms in one repeat, 40 ms in the other.
    row.runs.push_back(run_of({40 / ranks, 60 / ranks, 100 / ranks}, 128));
    row.runs.push_back(run_of({40 / ranks}, 128));
    table.rows.push_back(std::move(row));
  }
  LayoutRow& four = table.rows[0];
  four.runs[0].activities = activities(0.5, 0.2, 0.1);
  four.runs[1].activities = activities(0.7, 0.1, 0.1);
  four.runs[0].hidden_share = 0.5;
  four.runs[1].hidden_share = 1.0;
  four.runs[0].peak_bytes = 3 << 20;
  four.runs[1].peak_bytes = 2 << 20;
  four.runs[0].bytes_per_step = four.runs[1].bytes_per_step = 1 << 20;
  return table;
}

std::string text_of(const LayoutTable& table) {
  std::ostringstream text;
  print_grid(table, text);
  print_table(table, text);
  return text.str();
}

}  // namespace

TEST_CASE("figures of a row are those of all its repeats", "[layout_table]") {
  const LayoutTable table = sample_table();
  REQUIRE(table.rows.size() == 4);
  CHECK(table.reference().layout.name == "tp=1 dp=1 pp=1");
  const RowFigures one = table.figures(table.rows[3]);
  CHECK(one.median_ms == 40);  // of 40, 40, 60, 100
  CHECK(one.p95_ms == 100);
  CHECK(one.samples_per_s == Approx(4 * 128 / 0.240));
  CHECK(one.speed_up == 1);
  CHECK(one.efficiency == 1);
  CHECK(one.ideal_bubble == 0);
  CHECK_FALSE(one.hidden_share);

  const RowFigures four = table.figures(table.rows[0]);
  CHECK(table.rows[0].layout.name == "tp=1 dp=2 pp=2 zero=1 1f1b mpi");
  CHECK(four.median_ms == 10);
  CHECK(four.speed_up == 4);
  CHECK(four.efficiency == 1);
  CHECK(four.device_s_per_1000_samples == Approx(4 * 1000.0 / (4 * 128 / 0.060)));
  CHECK(four.peak_bytes == 3 << 20);
  CHECK(four.bytes_per_step == 1 << 20);
  CHECK(four.activity(Activity::forward) == Approx(0.6));
  CHECK(four.activity(Activity::communication) == Approx(0.15));
  CHECK(four.other == Approx(0.15));
  CHECK(four.ideal_bubble == Approx(1.0 / (4 + 2 - 1)));  // 2 lanes of 2 microbatches, 2 stages
  CHECK(*four.hidden_share == Approx(0.75));
}

TEST_CASE("figures are against the stated baseline, which is marked", "[layout_table]") {
  LayoutTable table = sample_table();
  CHECK(text_of(table).find("tp=1 dp=1 pp=1 (baseline) ") != std::string::npos);
  CHECK(text_of(table).find("[study]") == std::string::npos);
  table.rows[0].layout.is_baseline = true;
  CHECK(&table.reference() == &table.rows[0]);
  // 40 ms on one rank, 10 on the four of the baseline.
  CHECK(table.figures(table.rows[0]).speed_up == 1);
  CHECK(table.figures(table.rows[3]).speed_up == 0.25);
  CHECK(table.figures(table.rows[3]).efficiency == 1);
  table.plan.study = {.baseline = "dp=2 pp=2 zero=1", .candidates = "dp=2,1 pp=2,1 zero=1"};
  table.study = choose_study(table.plan, std::nullopt);
  const std::string text = text_of(table);
  INFO(text);
  for (const char* part :
       {"tp=1 dp=2 pp=2 zero=1 1f1b mpi (baseline) ", "against tp=1 dp=2 pp=2 zero=1 1f1b mpi;",
        "layouts of the plan: study.candidates = \"dp=2,1 pp=2,1 zero=1\", compared with "
        "study.baseline = \"dp=2"}) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
  CHECK(text.find("pp=1 (baseline)") == std::string::npos);
  const nlohmann::ordered_json json = table_json(table);
  CHECK(json["grid_from"] == "study.candidates");
  CHECK(json["grid"] == "dp=2,1 pp=2,1 zero=1");
  for (std::size_t row = 0; row < 4; ++row) CHECK(json["rows"][row]["is_baseline"] == (row == 0));

  table.study = choose_study(table.plan, "dp=2,1");
  CHECK(text_of(table).find("layouts of --grid; those of the plan's [study] are passed over") !=
        std::string::npos);
}

TEST_CASE("one bit of any hash of any run is noticed", "[layout_table]") {
  const LayoutTable same = sample_table();
  CHECK(same.same_bits());
  CHECK_FALSE(same.is_broken());
  CHECK(verdict_text(same).starts_with("same bits on all 4 layouts: state_hash 0"));
  CHECK(table_json(same)["same_bits"] == true);

  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t repeat = 0; repeat < 2; ++repeat) {
      if (row == 0 && repeat == 0) continue;  // what all are compared with
      for (const auto& hash : {&LayoutRun::state_hash, &LayoutRun::loss_hash}) {
        for (const auto& half : {&Hash128::low, &Hash128::high}) {
          LayoutTable table = sample_table();
          table.rows[row].runs[repeat].*hash.*half ^= 1;
          const std::string& name = table.rows[row].layout.name;
          CHECK(table.differing() == std::vector<std::string>{name});
          CHECK(table.is_broken());
          CHECK_FALSE(table.figures(table.rows[row]).same_bits);
          CHECK(verdict_text(table).find(": " + name + ". In exact mode") != std::string::npos);
          CHECK(text_of(table).find(" NO\n") != std::string::npos);
          const nlohmann::ordered_json json = table_json(table);
          CHECK(json["same_bits"] == false);
          CHECK(json["differing"] == std::vector<std::string>{name});
          CHECK(json["rows"][row]["same_bits"] == false);
        }
      }
    }
  }
}

TEST_CASE("the first run's bits decide who differs", "[layout_table]") {
  LayoutTable table = sample_table();
  table.rows[0].runs[0].state_hash.low ^= 1;
  CHECK(table.differing().size() == 4);  // its own second repeat too
}

TEST_CASE("fast mode promises no bits", "[layout_table]") {
  LayoutTable table = sample_table();
  table.plan.numerics.mode = NumericsMode::fast;
  table.rows[1].runs[0].loss_hash.high ^= 1;
  CHECK_FALSE(table.same_bits());
  CHECK_FALSE(table.is_broken());
  CHECK(verdict_text(table).find("fast mode promises none") != std::string::npos);
}

TEST_CASE("the table's text fits a terminal of 120 columns", "[layout_table]") {
  LayoutTable table = sample_table();
  table.grid.num_duplicates = 3;
  const std::string text = text_of(table);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 120);
    CHECK_FALSE(line.ends_with(' '));
  }
  for (const char* part :
       {"4 layouts on up to 4 ranks, 20 steps each, 2 of them warm-up; 2 repeats",
        "left out: 3 combinations", "skipped: layout.tp: ", "tp=8 dp=2 pp=2 zero=1 1f1b mpi,",
        "tp=1 dp=2 pp=2 zero=1 1f1b mpi     4     10.00    25.00", "against tp=1 dp=1 pp=1"}) {
    INFO(part << "\n" << text);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("the table as JSON", "[layout_table]") {
  const nlohmann::ordered_json json = table_json(sample_table());
  CHECK(json["ranks"] == 4);
  CHECK(json["steps"] == 20);
  CHECK(json["skipped"].size() == 4);
  CHECK(json["skipped"][0]["layout"]["tp"] == 8);
  const auto& row = json["rows"][0];
  CHECK(row["layout"]["pp"] == 2);
  CHECK(row["layout"]["transport"] == "mpi");
  CHECK(row["runs"].size() == 2);
  CHECK(row["runs"][0]["step_ms"]["median"] == 15);
  CHECK(row["hidden_buckets_percent"] == Approx(75));
  CHECK(json["rows"][3]["hidden_buckets_percent"].is_null());
  CHECK(row["exposed_communication_percent"] == Approx(15));
  CHECK(row["ideal_bubble_percent"] == Approx(20));
  double sum = 0;
  for (const auto& part : row["account_percent"]) sum += part.get<double>();
  CHECK(sum == Approx(100));
}
