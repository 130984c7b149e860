// `weft drill` itself: a sound plan passes at every kind of point, and what is not sound is noticed
// and named: other bits after a resume, a run that hangs, a launcher that keeps the order to
// itself.
#include <catch2/catch.hpp>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
namespace fs = std::filesystem;

std::string plan() { return write_plan({.model = "mlp", .steps = 12, .every_steps = 3}, "drill"); }

// A folder that is not there yet, where a drill may keep its runs.
std::string new_folder(const std::string& name) { return fresh_folder(name) + "/drill"; }

// A script that stands between the drill and the launcher; "$@" is what the drill starts.
std::string launcher(const std::string& name, const std::string& script) {
  const std::string path = fresh_folder(name) + "/launcher.sh";
  std::ofstream(path) << "#!/bin/sh\n" << script << '\n';
  fs::permissions(path, fs::perms::owner_all);
  return " --launcher \"" + path + " {ranks}\"";
}

bool contains_none_of_ours(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream file(entry.path() / "cmdline");
    const std::string words((std::istreambuf_iterator<char>(file)), {});
    if (words.find(folder) != std::string::npos) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a drill of a sound plan: all its tries end with the undisturbed run's bits") {
  const std::string folder = new_folder("drill-sound");
  const ProcessResult result =
      run_weft("drill " + plan() +
               " --layouts \"tp=2; dp=2 zero=1; pp=2\" --seed 5 --json --keep " + folder +
               " --points kill@save.shard:6,save.commit.done:9,load,flip:8,full:6,term@backward:5,"
               "stop@update:7");
  INFO(result.text << result.out);
  REQUIRE(result.exit_code == 0);
  const auto json = result.json();
  CHECK(json.at("same") == true);
  REQUIRE(json.at("tries").size() == 7);
  for (const auto& one : json.at("tries")) {
    INFO(one.dump());
    CHECK(one.at("verdict") == "same bits");
    CHECK(outcome_of(folder + "/try-" + std::to_string(one.at("try").get<int>()) + "/run") ==
          outcome_of(folder + "/undisturbed"));
  }
  // From where each must have gone on, by the rules of saving: every 3 steps, whole or not at all.
  const auto from = [&](int number) {
    return json.at("tries").at(static_cast<std::size_t>(number - 1)).at("resumed_from_step");
  };
  CHECK(from(1) == 3);                    // step 6 had no manifest
  CHECK((from(2) == 6 || from(2) == 9));  // rank 0 renames, and another one may die first
  CHECK(from(4) == 3);                    // step 6 was altered
  CHECK(from(5).is_null());               // the run itself went on
  CHECK(from(7) == 6);
}

TEST_CASE("a drill of a plan that saves beside its steps, and reads nothing back") {
  const ProcessResult result = run_weft(
      "drill " + plan() +
      " --set checkpoint.async=true --set checkpoint.read_back=false --layouts \"dp=2; tp=2\""
      " --seed 5 --json --points kill@save.write:6,flip:10,load:7,kill@save.commit:9");
  INFO(result.text << result.out);
  CHECK(result.exit_code == 0);
}

TEST_CASE("a drill of one job that is killed again and again") {
  for (const bool async : {false, true}) {
    const std::string folder = new_folder("drill-kills");
    const ProcessResult result =
        run_weft("drill " + write_plan({.model = "mlp", .steps = 24, .async = async}, "kills") +
                 " --kills 8 --layouts \"dp=1; tp=2; dp=2 zero=1; tp=2 dp=2; pp=2\" --seed 11 "
                 "--json --keep " +
                 folder);
    INFO(result.text << result.out);
    REQUIRE(result.exit_code == 0);
    const auto json = result.json();
    REQUIRE(json.at("tries").size() == 1);
    const auto& one = json.at("tries").at(0);
    CHECK(one.at("verdict") == "same bits");
    CHECK(one.at("kills") == 8);
    // Nine starts of one job, and only the last one came to its end.
    REQUIRE(one.at("parts").size() == 9);
    std::set<std::string> layouts, points;
    for (std::size_t i = 0; i < 9; ++i) {
      const auto& part = one.at("parts").at(i);
      INFO(part.dump());
      CHECK((part.at("exit_code") == 0) == (i == 8));
      CHECK(part.at("order").is_null() == (i == 8));
      layouts.insert(part.at("layout").get<std::string>());
      if (i < 8) points.insert(part.at("order").get<std::string>());
    }
    CHECK(layouts.size() >= 3);
    CHECK(points.size() >= 3);
    CHECK(outcome_of(folder + "/try-1/run") == outcome_of(folder + "/undisturbed"));
  }
}

TEST_CASE("a drill notices a resume that comes to other bits, and says how to repeat it") {
  const std::string folder = new_folder("drill-bits");
  const ProcessResult result = run_weft(
      "drill " + plan() + " --layouts \"dp=1\" --points kill@step:8 --steps 10 --seed 3 --keep " +
      folder +
      launcher("drill-bits-launcher",
               "shift\ncase \"$WEFT_DRILL$*\" in *kill*|*/undisturbed*) exec \"$@\";; esac\n"
               "exec \"$@\" --set numerics.seed=2 --allow-plan-change"));
  INFO(result.text << result.out);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "OTHER BITS"));
  CHECK(contains(result.text, "state_hash"));
  CHECK(contains(result.text, "FAILED: 1 of 1"));
  CHECK(contains(result.text, "--steps 10 --seed 3 --only 1"));
  CHECK(fs::exists(folder + "/try-1/run/run.jsonl"));
}

TEST_CASE("a drill ends a run that hangs, with all its processes") {
  const std::string folder = new_folder("drill-hang");
  const std::string mark = folder + "-sleeper";
  const ProcessResult result = run_weft(
      "drill " + plan() + " --layouts \"dp=1\" --points kill@step:8 --deadline 20 --keep " +
      folder +
      launcher("drill-hang-launcher",
               "shift\ncase \"$WEFT_DRILL$*\" in *kill*|*/undisturbed*) exec \"$@\";; esac\n"
               "sh -c 'sleep 600; exit' " +
                   mark + " &\nwait"));
  INFO(result.text << result.out);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "HANG"));
  CHECK(contains(result.text, "the resumed run had not ended after 20 s"));
  CHECK(contains_none_of_ours(mark));
  CHECK(result.seconds < 120.0);
}

TEST_CASE("a drill that is interrupted ends all its processes and exits with 3") {
  const std::string folder = new_folder("drill-interrupted");
  const std::string mark = folder + "-sleeper";
  const ProcessResult result =
      run_shell(WEFT_PROGRAM " drill " + plan() + " --layouts \"dp=1\" --keep " + folder +
                launcher("drill-interrupted-launcher",
                         "sh -c 'touch \"$0\"; sleep 600; exit' " + mark + " &\nwait") +
                " & drill=$!; while ! [ -e " + mark +
                " ]; do sleep 0.1; done; kill -TERM $drill; "
                "wait $drill");
  INFO(result.text << result.out);
  CHECK(result.exit_code == 3);
  CHECK(contains(result.text, "interrupted"));
  CHECK(contains_none_of_ours(mark));
}

TEST_CASE("a drill does not pass a run that was not disturbed") {
  const ProcessResult result =
      run_weft("drill " + plan() + " --layouts \"dp=1\" --points kill@step:8 --keep " +
               new_folder("drill-deaf") +
               launcher("drill-deaf-launcher", "shift\nunset WEFT_DRILL\nexec \"$@\""));
  INFO(result.text << result.out);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "NOT REACHED"));
  CHECK(contains(result.text, "pass WEFT_DRILL on"));
}

TEST_CASE("a drill that cannot be: exit code 2, and what to change") {
  const struct {
    std::string arguments, message;
  } wrong[] = {
      {"--set checkpoint.every_steps=0", "checkpoint.every_steps is 0"},
      {"--points save.comit", "did you mean save.commit?"},
      {"--points kil@step", "did you mean kill?"},
      {"--points kill@step:13", "expected a step from 1 to 12"},
      {"--points flip:6", "expected a step from 7 to 12"},
      // Written beside the steps, a second checkpoint is surely whole when the third is due.
      {"--points flip:9 --set checkpoint.async=true", "expected a step from 10 to 12"},
      {"--points load:6 --set checkpoint.async=true", "expected a step from 7 to 12"},
      {"--points save.read_back --set checkpoint.read_back=false", "checkpoint.read_back=true"},
      {"--points full@load", "full@save.shard"},
      {"--points flip --set checkpoint.keep=1", "checkpoint.keep = 1"},
      {"--ranks 2 --layouts \"tp=2 dp=2\"", "needs 4 ranks, and the drill starts at most 2"},
      {"--layouts \"tp=2; dp=5\"", "dp=5"},
      {"--layouts \"tq=2\"", "\"tq=2\""},
      {"--layouts \"tp=1,2\"", "expected one value for each key"},
      {"--steps 3", "4 steps or more"},
      {"--tries 0", "expected 1 to"},
      {"--kills 0", "expected 1 to"},
      {"--kills 5 --points stop@step", "expected points of kills"},
      {"--kills 5 --points kill@step:3", "without a step"},
      {"--kills 5 --points load,save.commit", "add step"},
      {"--keep " + test_folder(), "expected a new or an empty folder"},
  };
  for (const auto& one : wrong) {
    const ProcessResult result = run_weft("drill " + plan() + " " + one.arguments);
    INFO(one.arguments << "\n" << result.text);
    CHECK(result.exit_code == 2);
    CHECK(contains(result.text, one.message));
  }
}
