// `weft train --tensorboard`: what readers of its event files find is what run.jsonl and eval.jsonl
// say, number by number, also after kills and resumes. One reader is of these tests, the other
// TensorBoard's own, where WEFT_TENSORBOARD names a Python that has the package.
#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

namespace fs = std::filesystem;
using namespace weft::test;
using Json = nlohmann::json;
// By tag, in the order of the readers: step, and the float's bits.
using Charts = std::map<std::string, std::vector<std::pair<long, std::string>>>;

std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::string bits_of(const Json& number) {
  std::array<char, 9> text{};
  const auto value = number.is_null() ? std::numeric_limits<float>::quiet_NaN()
                                      : static_cast<float>(number.get<double>());
  std::snprintf(text.data(), text.size(), "%08x", std::bit_cast<unsigned>(value));
  return text.data();
}

// By the logs, which other tests judge.
Charts charts_expected(const std::string& run) {
  const std::map<std::string, std::string> tags = {
      {"loss", "train/loss"},           {"lr", "train/lr"},
      {"grad_norm", "train/grad_norm"}, {"accuracy", "train/accuracy"},
      {"samples", "train/samples"},     {"skipped", "train/skipped"},
      {"step_ms", "time/step_ms"},      {"data_wait_ms", "time/data_wait_ms"},
      {"elapsed_s", "time/elapsed_s"}};
  Charts charts;
  for (const Json& line : lines_of(run + "/run.jsonl")) {
    for (const auto& [name, tag] : tags)
      charts[tag].emplace_back(line.at("step").get<long>(), bits_of(line.at(name)));
  }
  long last = 0;
  for (const Json& line : lines_of(run + "/eval.jsonl")) {
    const long step = line.at("step");
    if (step == last) continue;  // a run that was complete evaluates its last step once more
    last = step;
    for (const char* name : {"loss", "accuracy", "macro_precision", "macro_recall", "macro_f1"}) {
      if (!line.at(name).is_null())
        charts[std::string("validation/") + name].emplace_back(step, bits_of(line.at(name)));
    }
    for (const Json& one : line.at("per_class")) {
      for (const char* name : {"precision", "recall", "f1"}) {
        if (!one.at(name).is_null())
          charts[std::string("validation_") + name + "/" + one.at("class").get<std::string>()]
              .emplace_back(step, bits_of(one.at(name)));
      }
    }
  }
  return charts;
}

Charts charts_read(const std::string& python, const char* reader, const std::string& run) {
  const ProcessResult result =
      run_shell(python + " " WEFT_EVENTS_READERS "/" + reader + " " + run + "/tensorboard");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  Charts charts;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    charts[line.substr(0, first)].emplace_back(
        std::stol(line.substr(first + 1, second - first - 1)), line.substr(second + 1));
  }
  return charts;
}

void check_charts(const std::string& run) {
  const Charts expected = charts_expected(run);
  REQUIRE(expected.size() >= 9 + 5 + 10);
  const auto compare = [&](const Charts& found) {
    for (const auto& [tag, values] : expected) {
      INFO(tag);
      REQUIRE(found.contains(tag));
      CHECK(found.at(tag) == values);
    }
    CHECK(found.size() == expected.size());
  };
  compare(charts_read("python3", "read_events.py", run));
  if (const char* python = std::getenv("WEFT_TENSORBOARD"); python && *python)
    compare(charts_read(python, "read_events_by_tensorboard.py", run));
  else
    std::cout
        << "without TensorBoard's own reader, which WEFT_TENSORBOARD=1 tests/run.sh installs\n";
}

std::size_t num_event_files(const std::string& run) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(run + "/tensorboard"))
    count += entry.path().filename().string().starts_with("events.out.tfevents.") ? 1 : 0;
  return count;
}

std::string plan_of(const std::string& name) {
  return write_plan({.model = "mlp", .steps = 45, .every_steps = 10}, name) +
         " --set eval.every_epochs=1";
}

ProcessResult done(const ProcessResult& result) {
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  return result;
}

}  // namespace

TEST_CASE("each number of the logs is in the event files") {
  const std::string run = fresh_run("tensorboard");
  done(train(plan_of("tensorboard"), run, {2, "layout.dp=2"}, " --tensorboard"));
  CHECK(lines_of(run + "/run.jsonl").size() == 45);
  CHECK(lines_of(run + "/eval.jsonl").size() >= 2);
  CHECK(num_event_files(run) == 1);
  check_charts(run);

  // A run that was complete says nothing twice.
  done(train(plan_of("tensorboard"), run, {1, ""}, " --resume auto"));
  CHECK(num_event_files(run) == 2);
  check_charts(run);
}

TEST_CASE("after kills and resumes each step is there once") {
  const std::string plan = plan_of("tensorboard-kills");
  const std::string run = fresh_run("tensorboard-kills");
  const std::vector<std::string> kills = {"kill at=step rank=0 step=7",   // before any checkpoint
                                          "kill at=step rank=0 step=29",  // after step 28, saved 20
                                          "kill at=save.commit rank=0 step=30"};
  const std::vector<Layout> on = {{1, ""}, {2, "layout.dp=2"}, {2, "layout.tp=2"}};
  for (std::size_t i = 0; i < kills.size(); ++i) {
    INFO(kills[i]);
    // Asked for once: what began is gone on with.
    const ProcessResult killed =
        train(plan, run, on[i], i == 0 ? " --resume auto --tensorboard" : " --resume auto",
              "WEFT_DRILL='" + kills[i] + "' ");
    INFO(killed.text);
    REQUIRE(killed.exit_code != 0);
    CHECK(num_event_files(run) == i + 1);
    // What a kill within a write leaves.
    for (const auto& entry : fs::directory_iterator(run + "/tensorboard"))
      if (i == 1) std::ofstream(entry.path(), std::ios::app | std::ios::binary) << "\x30\0\0";
  }
  done(train(plan, run, {1, ""}, " --resume auto"));
  CHECK(lines_of(run + "/run.jsonl").size() == 45);
  CHECK(num_event_files(run) == 4);
  check_charts(run);
}

TEST_CASE("without the option there are no event files, and a wrong folder is told") {
  const std::string run = fresh_run("tensorboard-none");
  done(train(plan_of("tensorboard-none"), run));
  CHECK_FALSE(fs::exists(run + "/tensorboard"));

  const std::string other = fresh_run("tensorboard-wrong");
  fs::create_directories(other);
  std::ofstream(other + "/tensorboard") << "x";
  const ProcessResult refused =
      train(plan_of("tensorboard-none"), other, {1, ""}, " --tensorboard");
  INFO(refused.text);
  CHECK(refused.exit_code == 1);
  CHECK(contains(refused.text, "cannot create the folder " + other + "/tensorboard"));
}
