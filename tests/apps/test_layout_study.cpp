// Which layouts `weft layouts` compares: --grid, or the candidates and the baseline of the plan.
#include <algorithm>
#include <catch2/catch.hpp>

#include "apps/layout_study.hpp"
#include "core/error.hpp"
#include "tests/parallel/plan/sample_plan.hpp"

using namespace weft;
using weft::testing::sample_plan;

namespace {

Plan plan_of(const std::string& candidates, const std::string& baseline = "") {
  Plan plan = sample_plan();
  plan.study = {.baseline = baseline, .candidates = candidates};
  return plan;
}

GridLayouts layouts(const Plan& plan, int num_ranks) {
  return layouts_of(plan, choose_study(plan, std::nullopt), num_ranks, {"mpi", "local"});
}

// "*" before the baseline.
std::vector<std::string> names(const GridLayouts& found) {
  std::vector<std::string> list;
  for (const GridLayout& layout : found.to_run)
    list.push_back((layout.is_baseline ? "*" : "") + layout.name);
  return list;
}

template <class Body>
void require_usage(Body&& body, const std::string& begin, const std::vector<std::string>& parts) {
  try {
    body();
    FAIL("no error");
  } catch (const Error& error) {
    const std::string message = error.what();
    INFO(message);
    CHECK(error.code() == ExitCode::usage);
    CHECK(message.starts_with(begin));
    for (const std::string& part : parts) {
      INFO("expected: " << part);
      CHECK(message.find(part) != std::string::npos);
    }
  }
}

}  // namespace

TEST_CASE("a grid on the command line wins over the plan's study, wholly", "[layout_study]") {
  const Plan plan = plan_of("tp=1,2", "tp=4");
  const LayoutStudy given = choose_study(plan, "dp=1,2");
  CHECK(given.candidates == "dp=1,2");
  CHECK(given.baseline.empty());
  CHECK(given.from == "--grid");
  CHECK(names(layouts_of(plan, given, 4, {"mpi"})) ==
        std::vector<std::string>{"tp=1 dp=1 pp=1", "tp=1 dp=2 pp=1"});
  // Given and empty is a slip, not "not given".
  require_usage([&] { layouts_of(plan, choose_study(plan, ""), 4, {"mpi"}); }, "--grid: is empty",
                {});

  const LayoutStudy stated = choose_study(plan, std::nullopt);
  CHECK(stated.candidates == "tp=1,2");
  CHECK(stated.baseline == "tp=4");
  CHECK(stated.from == "study.candidates");
}

TEST_CASE("the baseline runs first, once, among the candidates or not", "[layout_study]") {
  CHECK(names(layouts(plan_of("tp=1,2 dp=1,2", "tp=2 dp=2"), 4)) ==
        std::vector<std::string>{"*tp=2 dp=2 pp=1", "tp=1 dp=1 pp=1", "tp=1 dp=2 pp=1",
                                 "tp=2 dp=1 pp=1"});
  CHECK(names(layouts(plan_of("tp=1,2", "dp=4 zero=1"), 4)) ==
        std::vector<std::string>{"*tp=1 dp=4 pp=1 zero=1", "tp=1 dp=1 pp=1", "tp=2 dp=1 pp=1"});
  // The same run by another name: zero without replicas.
  CHECK(names(layouts(plan_of("tp=1,2", "tp=1 zero=1"), 4)) ==
        std::vector<std::string>{"*tp=1 dp=1 pp=1", "tp=2 dp=1 pp=1"});
  CHECK(names(layouts(plan_of("tp=1,2"), 4)) ==
        std::vector<std::string>{"tp=1 dp=1 pp=1", "tp=2 dp=1 pp=1"});
}

TEST_CASE("without layouts to compare, both places are named", "[layout_study]") {
  require_usage([] { choose_study(sample_plan(), std::nullopt); }, "expected layouts to compare",
                {"--grid \"tp=1,2 dp=1,2\"", "study.candidates", "found neither"});
  require_usage([] { choose_study(plan_of("", "tp=1"), std::nullopt); },
                "expected layouts to compare", {"only study.baseline = \"tp=1\""});
}

TEST_CASE("a slip in the plan's study names its key", "[layout_study]") {
  require_usage([] { layouts(plan_of("tp=1,2 zreo=1"), 4); }, "study.candidates: zreo",
                {"did you mean zero?"});
  require_usage([] { layouts(plan_of("tp=4 dp=4"), 4); },
                "study.candidates: no layout of it can run here:", {"needs 16 ranks; 4 were"});
  require_usage([] { layouts(plan_of("tp=1", "tp=two"), 4); }, "study.baseline: tp", {"two"});
  require_usage([] { layouts(plan_of("tp=1", "tp=1,2"), 4); }, "study.baseline: ",
                {"one value for each key", "2 of layout.tp", "study.candidates"});
  require_usage([] { layouts(plan_of("tp=1", "dp=4"), 2); }, "study.baseline: dp=4 cannot run here",
                {"needs 4 ranks; 2 were started", "--grid"});
}

TEST_CASE("layouts name their splits", "[layout_study]") {
  require_usage([] { layouts(plan_of("pp=2 stages=even,measured"), 2); },
                "study.candidates: stages: expected even or a list", {"found measured"});
  // On one stage it means nothing.
  CHECK(names(layouts(plan_of("pp=1 stages=even,measured"), 2)) ==
        std::vector<std::string>{"tp=1 dp=1 pp=1"});
}

TEST_CASE("weft check finds what is wrong with a study on any number of ranks", "[layout_study]") {
  CHECK(study_faults(sample_plan()).empty());
  CHECK(study_faults(plan_of("tp=1,2,4 dp=1,4", "tp=4 dp=4 transport=ucx")).empty());
  const std::vector<PlanFault> faults = study_faults(plan_of("shedule=gpipe", "tp=8"));
  REQUIRE(faults.size() == 2);
  CHECK(faults[0].key == "study.candidates");
  CHECK(faults[0].message.starts_with("shedule: not a key of the layout; did you mean schedule?"));
  CHECK(faults[1].key == "study.baseline");
  CHECK(faults[1].message.starts_with("tp=8 cannot run here: layout.tp: "));
  CHECK(study_faults(plan_of("tp=8")).size() == 1);
}
