// `weft ckpt` as a user starts it: which command does what, and the exit codes that scripts rely
// on.
#include <catch2/catch.hpp>

#include "tests/fault/checkpoint_run.hpp"

using namespace weft::test;

namespace {

// Saved after 2, 4 and 6 steps.
const std::string& saved_run() {
  static const std::string run = [] {
    const SmallPlan plan{.model = "mlp", .keep = 3};
    const std::string folder = fresh_run("ckpt-program");
    const ProcessResult result =
        train(write_plan(plan, "ckpt-program"), folder, {2, "layout.tp=2"});
    INFO(result.text);
    REQUIRE(result.exit_code == 0);
    return folder;
  }();
  return run;
}

int code_of(const std::string& arguments) { return run_weft("ckpt " + arguments).exit_code; }

}  // namespace

TEST_CASE("ls and inspect") {
  const ProcessResult ls = run_weft("ckpt ls " + saved_run() + " --json");
  CHECK(ls.exit_code == 0);
  const auto list = ls.json().at("checkpoints");
  REQUIRE(list.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const int step = 6 - 2 * static_cast<int>(i);
    CHECK(list[i].at("step") == step);
    const ProcessResult inspect =
        run_weft("ckpt inspect " + step_folder(saved_run(), step) + " --json");
    CHECK(inspect.exit_code == 0);
    CHECK(inspect.json().at("id") == list[i].at("id"));
    CHECK(inspect.json().at("step") == step);
  }
  const ProcessResult pieces = run_weft("ckpt inspect " + step_folder(saved_run(), 6) +
                                        " --tensor block.1.up.weight --json");
  CHECK(pieces.exit_code == 0);
  CHECK(pieces.json().at("pieces").size() >= 3);
  CHECK(code_of("inspect " + step_folder(saved_run(), 6) + " --tensor nothing") == 2);
}

TEST_CASE("verify and diff") {
  const std::string two = step_folder(saved_run(), 2), four = step_folder(saved_run(), 4);
  CHECK(code_of("verify " + two) == 0);
  CHECK(code_of("diff " + two + " " + two) == 0);
  const ProcessResult differ = run_weft("ckpt diff " + two + " " + four + " --json");
  CHECK(differ.exit_code == 1);
  CHECK(differ.json().at("equal") == false);
  CHECK(differ.json().at("steps") == nlohmann::json{2, 4});
}

TEST_CASE("what is not there, and what is not a command") {
  const std::string missing = step_folder(saved_run(), 5), two = step_folder(saved_run(), 2);
  for (const std::string& arguments : {"ls " + missing, "inspect " + missing, "verify " + missing,
                                       "diff " + two + " " + missing}) {
    const ProcessResult result = run_weft("ckpt " + arguments);
    INFO(arguments << "\n" << result.text);
    CHECK(result.exit_code == 5);
    CHECK(contains(result.text, missing));
  }
  for (const char* arguments : {"", "prune", "ls", "verify", "diff"}) {
    INFO(arguments);
    CHECK(code_of(arguments) == 2);
  }
  CHECK(code_of("diff " + two) == 2);
}
