// What `weft train` records of time and memory, against each other and against a clock outside: the
// program as a user starts it.
#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
using Json = nlohmann::json;

const Layout four_ranks{4, "layout.tp=2 layout.pp=2"};

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

double sum_of(const std::vector<Json>& lines, const char* key, std::size_t first = 0) {
  double sum = 0.0;
  for (std::size_t i = first; i < lines.size(); ++i) sum += lines[i].at(key).get<double>();
  return sum;
}

double sum_of(const Json& object) {
  double sum = 0.0;
  for (const Json& value : object) sum += value.get<double>();
  return sum;
}

struct Run {
  std::string folder;
  Json summary;
  std::vector<Json> steps, evaluations;
  double seconds = 0.0;
  std::string text;
};

Run run(const SmallPlan& plan, const std::string& name, const Layout& layout,
        const std::string& more = "") {
  Run run{.folder = fresh_run(name), .summary = {}, .steps = {}, .evaluations = {}, .text = {}};
  const ProcessResult result =
      train(write_plan(plan, name), run.folder, layout, "--json --set eval.every_epochs=1 " + more);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  run.summary = result.json();
  run.seconds = result.seconds;
  run.text = result.text;
  run.steps = lines_of(run.folder + "/run.jsonl");
  run.evaluations = lines_of(run.folder + "/eval.jsonl");
  return run;
}

// The smallest value that at least `share` of all do not exceed, by counting.
double quantile(const std::vector<double>& values, double share) {
  double best = *std::max_element(values.begin(), values.end());
  for (const double value : values) {
    const auto covered =
        std::count_if(values.begin(), values.end(), [&](double other) { return other <= value; });
    if (static_cast<double>(covered) >= share * static_cast<double>(values.size()))
      best = std::min(best, value);
  }
  return best;
}

}  // namespace

TEST_CASE("the parts of a run add up to its time, and step times to the steps' part") {
  const Run it = run({.steps = 50, .every_steps = 20}, "records-time", four_ranks);
  const Json& s = it.summary;
  double parts = 0.0;
  for (const char* part : {"start_s", "training_s", "evaluation_s", "checkpoint_s", "finish_s"}) {
    INFO(part);
    CHECK(s.at(part) > 0.0);
    parts += s.at(part).get<double>();
  }
  // Whole nanoseconds, as doubles of seconds.
  CHECK(parts == Approx(s.at("total_s").get<double>()).epsilon(0).margin(1e-9));
  CHECK(s.at("total_s") < it.seconds);
  // 20 steps an epoch: after 20 and 40, and at the end.
  REQUIRE(it.evaluations.size() == 3);
  CHECK(s.at("evaluation_s") >= 1e-3 * sum_of(it.evaluations, "ms"));
  CHECK(s.at("training_s") >= 1e-3 * sum_of(it.steps, "step_ms"));
  CHECK(s.at("checkpoints").at("saved") == 3);
  CHECK(s.at("checkpoint_s") >= s.at("checkpoints").at("write_s"));
  CHECK(s.at("first_step_done_ms") >= it.steps.front().at("step_ms"));

  // 20 steps of warm-up, then all others.
  std::vector<double> measured;
  double samples = 0.0;
  for (std::size_t i = 20; i < it.steps.size(); ++i) {
    measured.push_back(it.steps[i].at("step_ms"));
    samples += it.steps[i].at("samples").get<double>();
  }
  const Json& step = s.at("step_ms");
  CHECK(step.at("warm_up_steps") == 20);
  CHECK(step.at("measured_steps") == 30);
  CHECK(step.at("median") == quantile(measured, 0.5));
  CHECK(step.at("p95") == quantile(measured, 0.95));
  const double measured_ms = sum_of(it.steps, "step_ms", 20);
  CHECK(s.at("samples_per_s").get<double>() == Approx(1e3 * samples / measured_ms).epsilon(1e-12));
  CHECK(s.at("ranks").at(0).at("steps_ms").get<double>() == Approx(measured_ms).epsilon(1e-12));
  CHECK(s.at("ranks").at(0).at("ms").at("data_wait").get<double>() ==
        Approx(sum_of(it.steps, "data_wait_ms", 20)).epsilon(1e-12));
}

TEST_CASE("each rank's time adds up to its steps, its memory to its peak") {
  const Json summary = run({.steps = 10}, "records-ranks", four_ranks).summary;
  CHECK(summary.at("step_ms").at("warm_up_steps") == 5);
  const Json& ranks = summary.at("ranks");
  REQUIRE(ranks.size() == 4);
  std::set<std::vector<int>> places;
  std::uint64_t peak = 0;
  for (const Json& rank : ranks) {
    INFO(rank.dump());
    const auto place = [&](const char* axis) { return rank.at(axis).get<int>(); };
    places.insert(std::vector<int>{place("tp"), place("dp"), place("pp")});
    const Json& ms = rank.at("ms");
    // What is counted twice would make the rest negative; what no span covers is loops alone.
    for (const Json& part : ms) CHECK(part >= 0.0);
    CHECK(sum_of(ms) == Approx(rank.at("steps_ms").get<double>()).epsilon(1e-9));
    for (const char* busy :
         {"data_wait", "forward", "backward", "communication", "bubble", "update"})
      CHECK(ms.at(busy) > 0.0);
    // All outside the steps.
    for (const char* outside : {"start_up", "evaluation", "checkpoint", "output"})
      CHECK(ms.at(outside) == 0.0);

    CHECK(sum_of(rank.at("peak_bytes_by_kind")) == rank.at("peak_bytes"));
    const Json& phases = rank.at("peak_bytes_by_phase");
    CHECK(phases.at(rank.at("peak_phase").get<std::string>()) == rank.at("peak_bytes"));
    for (const Json& phase : phases) CHECK(phase <= rank.at("peak_bytes"));
    // Activations live between forward and backward: neither start nor update can be the peak.
    const std::set<std::string> busy = {"forward", "backward"};
    CHECK(busy.contains(rank.at("peak_phase").get<std::string>()));
    peak = std::max(peak, rank.at("peak_bytes").get<std::uint64_t>());
  }
  CHECK(places == std::set<std::vector<int>>{{0, 0, 0}, {1, 0, 0}, {0, 0, 1}, {1, 0, 1}});
  CHECK(summary.at("peak_bytes") == peak);
}

TEST_CASE("time to the target is the same evaluation's over a resume, and counts no step twice") {
  // A loss of ten classes at random is ln 10 = 2.3 and soon below 3: reached at the first
  // evaluation, confirmed by the second, which the resumed part makes.
  const std::string target =
      " --set 'task.target={metric=\"loss\",split=\"validation\",at_most=3.0}'";
  const SmallPlan plan{.steps = 60, .every_steps = 30, .keep = 2};
  const Run whole = run(plan, "records-target", four_ranks, target);
  const Json& reached = whole.summary.at("target");
  CHECK(reached.at("reached") == true);
  CHECK(reached.at("step") == 20);
  CHECK(reached.at("epochs") == 1.0);
  CHECK(reached.at("value") == whole.evaluations[0].at("loss"));
  CHECK(reached.at("elapsed_s") == whole.evaluations[0].at("elapsed_s"));
  const std::vector<Json> first_epoch(whole.steps.begin(), whole.steps.begin() + 20);
  CHECK(reached.at("training_s").get<double>() ==
        Approx(1e-3 * sum_of(first_epoch, "step_ms")).epsilon(1e-12));
  CHECK(reached.at("elapsed_s") >= reached.at("training_s").get<double>() +
                                       1e-3 * whole.evaluations[0].at("ms").get<double>());
  CHECK(whole.text.find("target loss at most 3: reached at step 20 after 1 epochs") !=
        std::string::npos);

  // Back to step 30: what came after it is made again.
  const ProcessResult again =
      train(write_plan(plan, "records-target"), whole.folder, {2, "layout.dp=2"},
            "--json --resume 30 --set eval.every_epochs=1" + target);
  INFO(again.text);
  REQUIRE(again.exit_code == 0);
  const Json resumed = again.json();
  CHECK(resumed.at("target") == reached);
  const std::vector<Json> steps = lines_of(whole.folder + "/run.jsonl");
  REQUIRE(steps.size() == 60);
  CHECK(resumed.at("all_parts").at("training_s").get<double>() ==
        Approx(1e-3 * sum_of(steps, "step_ms")).epsilon(1e-12));
  for (std::size_t i = 1; i < steps.size(); ++i)
    CHECK(steps[i].at("elapsed_s") > steps[i - 1].at("elapsed_s"));
  const double before = steps[29].at("elapsed_s");
  CHECK(resumed.at("all_parts").at("elapsed_s") > before + resumed.at("training_s").get<double>());
  CHECK(resumed.at("all_parts").at("elapsed_s") < before + resumed.at("total_s").get<double>());
}

TEST_CASE("replicas record their samples, and check --run compares them with the plan") {
  const std::string folder_name = "records-samples";
  const Layout dp2{4, "layout.tp=2 layout.dp=2"};
  const Run it = run({.steps = 25}, folder_name, dp2);
  const Json& replicas = it.summary.at("replicas");
  REQUIRE(replicas.size() == 2);
  for (const Json& replica : replicas) CHECK(replica.at("updates") == 25);
  CHECK(replicas[0].at("samples_hash") != replicas[1].at("samples_hash"));

  const std::string plan = write_plan({.steps = 25}, folder_name);
  const auto check = [&](const std::string& more) {
    return run_weft("check " + plan + " --set eval.every_epochs=1 --json --run " + it.folder + " " +
                    more);
  };
  const ProcessResult same = check("");
  INFO(same.text);
  CHECK(same.exit_code == 0);
  CHECK(same.json().at("agrees") == true);
  // Another order of samples, or another number of updates: what the run did not do.
  for (const char* other :
       {"--set numerics.seed=99", "--set run.steps=24", "--set task.split.seed=8"}) {
    const ProcessResult differs = check(other);
    INFO(differs.text);
    CHECK(differs.exit_code == 1);
    CHECK(differs.text.find("DIFFERS") != std::string::npos);
  }
  // A replica that had other samples than its part, as a wrong loader would give it.
  Json summary = it.summary;
  std::swap(summary["replicas"][0]["samples_hash"], summary["replicas"][1]["samples_hash"]);
  std::ofstream(it.folder + "/summary.json") << summary.dump();
  const ProcessResult swapped = check("");
  CHECK(swapped.exit_code == 1);
  CHECK(swapped.text.find("replica 1: samples of steps 1 to 25") != std::string::npos);
}

TEST_CASE("a plan's products by themselves: those of a text begin with its blocks") {
  for (const auto& [plan, first, number] :
       {std::tuple{"text-gpt", "up forward", 6}, {"bank-mlp", "stem forward", 8}}) {
    const ProcessResult result =
        run_weft("bench gemm " + std::string(WEFT_PLANS) + "/" + plan + ".toml --json");
    INFO(result.text);
    REQUIRE(result.exit_code == 0);
    const Json products = result.json().at("products");
    CHECK(products.size() == static_cast<std::size_t>(number));
    CHECK(products.at(0).at("product") == first);
    for (const Json& product : products) CHECK(product.at("whole_gflops") > 0.0);
  }
}
