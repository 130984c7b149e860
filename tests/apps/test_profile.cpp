// `weft profile` as a user starts it: rows that add up, delays that are named, and no bit changed.
#include <catch2/catch.hpp>

#include <fstream>
#include <numeric>
#include <string>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
using Json = nlohmann::json;

std::string plan() { return write_plan({.steps = 12, .every_steps = 100}, "profile"); }

Json profile(int num_ranks, const std::string& more) {
  const ProcessResult result =
      run_weft_ranks(num_ranks, "profile " + plan() + " --steps 8 --warmup 4 --json " + more);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  return result.json();
}

void check_sums(const Json& profile) {
  for (const Json& rank : profile.at("ranks")) {
    std::int64_t sum = 0;
    for (const auto& [name, ns] : rank.at("ns").items()) {
      INFO(name);
      CHECK(ns.get<std::int64_t>() >= 0);
      sum += ns.get<std::int64_t>();
    }
    CHECK(sum == rank.at("wall_ns").get<std::int64_t>());
    CHECK(rank.at("dropped_events") == 0);
    double waited_ms = 0.0;
    for (const Json& wait : rank.at("waits")) waited_ms += wait.at("ms_a_step").get<double>();
    CHECK(waited_ms * 8 * 1e6 ==
          Approx(rank.at("ns").at("straggler_wait").get<double>()).margin(1));
  }
}

}  // namespace

TEST_CASE("the rows of each rank add up to the nanosecond, and the result is that of training") {
  const std::string run = fresh_run("profile-reference");
  REQUIRE(train(plan(), run).exit_code == 0);
  for (const Layout& layout : {Layout{1, ""}, Layout{4, "layout.tp=2 layout.dp=2"},
                               Layout{4, "layout.pp=2 layout.dp=2"}}) {
    INFO(layout.keys);
    const Json found = profile(layout.num_ranks, layout.arguments());
    REQUIRE(found.at("ranks").size() == static_cast<std::size_t>(layout.num_ranks));
    CHECK(found.at("measured_steps") == 8);
    CHECK(found.at("injected").is_null());
    CHECK(found.at("state_hash") == outcome_of(run).state_hash);
    CHECK(found.at("loss_hash") == outcome_of(run).loss_hash);
    check_sums(found);
  }
}

TEST_CASE("a slow rank and a slow loader are named, and change no bit") {
  const Json plain = profile(2, "--set layout.dp=2");
  struct Case {
    const char* delay;
    int rank;
    const char* cause;
  };
  for (const Case& one : {Case{"1:compute=150", 1, "compute"}, Case{"0:data=400", 0, "data"}}) {
    INFO(one.delay);
    const Json found = profile(2, std::string("--set layout.dp=2 --delay ") + one.delay);
    INFO(found.dump());
    check_sums(found);
    CHECK(found.at("injected") == one.delay);
    REQUIRE(found.at("straggler").is_object());
    CHECK(found.at("straggler").at("rank") == one.rank);
    CHECK(found.at("straggler").at("cause") == one.cause);
    CHECK(found.at("state_hash") == plain.at("state_hash"));
    CHECK(found.at("loss_hash") == plain.at("loss_hash"));
  }
}

TEST_CASE("a slow link is the link's, not a rank's") {
  const Json found = profile(2, "--set layout.dp=2 --delay 1:link=60");
  INFO(found.dump());
  check_sums(found);
  // Both are in the collective: the bytes are late, nobody else is.
  const Json& waiting = found.at("ranks").at(0).at("ns");
  CHECK(waiting.at("communication_dp").get<double>() > 10.0 * waiting.at("forward").get<double>());
  if (found.at("straggler").is_object()) CHECK(found.at("straggler").at("cause") != "data");
  CHECK(waiting.at("communication_dp").get<double>() >
        2.0 * waiting.at("straggler_wait").get<double>());
}

TEST_CASE("a report shows what was profiled, beside a run") {
  const std::string run = fresh_run("profile-run");
  REQUIRE(train(plan(), run).exit_code == 0);
  const std::string file = run + "/../profile.json", trace = run + "/../stages.json";
  const ProcessResult profiled = run_weft_ranks(
      2, "profile " + plan() + " --steps 8 --warmup 4 --json --set layout.pp=2 --trace " + trace);
  REQUIRE(profiled.exit_code == 0);
  std::ofstream(file) << profiled.out;
  // Names of files end where the next word begins.
  const ProcessResult shown = run_weft("report --markdown --profile " + file + " --profile " +
                                       file + " --trace-step 7 --trace " + trace + " " + run);
  INFO(shown.text << shown.out);
  REQUIRE(shown.exit_code == 0);
  const Json rank = profiled.json().at("ranks").at(1);
  double wall_ms = 0.0;
  for (const Json& ns : rank.at("ns")) wall_ms += ns.get<double>() * 1e-6 / 8;
  for (const std::string& part : std::vector<std::string>{
           "## Run run\n", "8 steps after 4 of warm-up", "| 1: tp 0 dp 0 pp 1 |",
           "## Pipeline of stages", "step 7 of 5 to 12", "of 2 stages and"}) {
    INFO(part);
    CHECK(contains(shown.out, part));
  }
  const std::size_t row = shown.out.find("| 1: tp 0 dp 0 pp 1 |");
  const std::string line = shown.out.substr(row, shown.out.find('\n', row) - row);
  // The last cell; groups of one rank, of which there are microseconds, are left out.
  const double shown_ms = std::stod(line.substr(line.rfind('|', line.size() - 2) + 1));
  CHECK(shown_ms == Approx(wall_ms).epsilon(1e-3).margin(0.05));
}

TEST_CASE("what cannot be profiled is told in one message") {
  const struct {
    const char* arguments;
    const char* message;
  } wrong[] = {{"--steps 0", "--steps: expected 1 or more; found 0"},
               {"--warmup -1", "--warmup: expected 0 or more; found -1"},
               {"--delay 0:compte=5", "did you mean compute?"},
               {"--delay 9:compute=5", "the run has ranks 0 to 0"},
               {"--trace notes.txt", "expected a name that ends in .json"}};
  for (const auto& one : wrong) {
    const ProcessResult result = run_weft("profile " + plan() + " " + one.arguments);
    INFO(one.arguments << "\n" << result.text);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.text, one.message));
  }
}
