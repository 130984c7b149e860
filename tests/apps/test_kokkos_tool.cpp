// What a Kokkos tool sees of a run: our spans as its regions, our kernels inside them.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;

struct Seen {
  std::map<std::string, int> regions;                         // times opened
  std::map<std::string, std::map<std::string, int>> kernels;  // by the outermost region
  int open_at_end = 0;
};

Seen read_events(const std::string& path) {
  std::ifstream file(path);
  Seen seen;
  std::vector<std::string> open;
  std::string line;
  REQUIRE(std::getline(file, line));
  REQUIRE(line == "init");
  while (std::getline(file, line)) {
    if (line.starts_with("push ")) {
      open.push_back(line.substr(5));
      ++seen.regions[open.back()];
    } else if (line == "pop") {
      REQUIRE(!open.empty());
      open.pop_back();
    } else {
      REQUIRE(line.starts_with("kernel "));
      ++seen.kernels[open.empty() ? "none" : open.front()][line.substr(7)];
    }
  }
  seen.open_at_end = static_cast<int>(open.size());
  return seen;
}

}  // namespace

TEST_CASE("a tool sees the spans of a run as regions, and every kernel in one of them") {
  const SmallPlan small{.model = "vit", .steps = 6, .every_steps = 100};
  const std::string plan = write_plan(small, "tool");
  const std::string plain = fresh_run("tool-none"), run = fresh_run("tool-run");
  REQUIRE(train(plan, plain).exit_code == 0);
  const std::string events = fresh_folder("tool-events") + "/events";
  // The first name is that of Kokkos 3, the second that of later ones.
  for (const char* name : {"KOKKOS_PROFILE_LIBRARY", "KOKKOS_TOOLS_LIBS"})
    setenv(name, WEFT_TEST_TOOL, 1);
  setenv("WEFT_TEST_TOOL_FILE", events.c_str(), 1);
  const ProcessResult result = run_weft("train " + plan + " --run " + run);
  for (const char* name : {"KOKKOS_PROFILE_LIBRARY", "KOKKOS_TOOLS_LIBS", "WEFT_TEST_TOOL_FILE"})
    unsetenv(name);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(outcome_of(run).state_hash == outcome_of(plain).state_hash);

  const Seen seen = read_events(events);
  CHECK(seen.open_at_end == 0);
  CHECK(seen.regions.at("update") == 6);
  CHECK(seen.regions.at("forward") == seen.regions.at("backward"));
  CHECK(seen.regions.at("forward") % 6 == 0);
  CHECK(seen.regions.at("trainer.start_up") == 1);
  CHECK(seen.kernels.count("none") == 0);
  const auto starts_in = [&](const char* region, const char* kernel) {
    int count = 0;
    for (const auto& [name, times] : seen.kernels.at(region))
      if (name.find(kernel) != std::string::npos) count += times;
    return count;
  };
  CHECK(starts_in("update", "adamw") > 0);
  CHECK(starts_in("update", "adamw") % 6 == 0);
  CHECK(starts_in("forward", "layer_norm") > 0);
  CHECK(starts_in("backward", "layer_norm.backward") > 0);
}
