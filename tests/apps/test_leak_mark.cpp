// A plan that lets a leak in: everything that tells figures of it or its run says so, to people and
// to programs; and nothing does where no leak is let in.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "tests/weft_process.hpp"

namespace {

using nlohmann::json;
using weft::test::ProcessResult;

const std::string mark =
    "LEAK ALLOWED: duration is a feature (task.allow_leak), which is known only after the call: "
    "figures of this plan are no predictions";

// A small job on a drawn table of 800 rows, as arguments of any command that takes a plan.
struct Job {
  std::string folder, data, plan, run;
  explicit Job(bool allow_leak)
      : folder(weft::test::fresh_folder(allow_leak ? "leak" : "no-leak")),
        data(folder + "/data"),
        plan(folder + "/plan.toml"),
        run(folder + "/run") {
    std::ofstream(plan)
        << "[task]\ndataset = \"bank\"\nallow_leak = " << (allow_leak ? "true" : "false")
        << "\nsplit = { kind = \"time\", train = 400, validation = 100, test = 100 }\n"
           "[model]\nkind = \"mlp\"\nlayers = 2\nhidden = 16\n"
           "[batch]\nglobal = 32\nmicro = 4\n[numerics]\nshards = 2\nlanes = 2\n"
           "[optimizer]\nkind = \"adamw\"\nlr = 1e-3\n[run]\nsteps = 4\n"
           "[checkpoint]\nevery_steps = 2\n";
    run_it("data make bank " + data + " --rows 800");
  }
  ProcessResult run_it(const std::string& arguments, int code = 0) const {
    ProcessResult result = weft::test::run_weft(arguments);
    INFO(arguments << "\n" << result.text);
    REQUIRE(result.exit_code == code);
    return result;
  }
};

std::vector<json> lines_of(const std::string& path) {
  std::vector<json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
  REQUIRE_FALSE(lines.empty());
  return lines;
}

// The first of its --tensorboard.
std::string event_file_of(const Job& job) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(job.run + "/tensorboard"))
    paths.push_back(entry.path().string());
  REQUIRE_FALSE(paths.empty());
  std::ifstream file(*std::min_element(paths.begin(), paths.end()), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::string joined(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;)
    text.replace(at, 3, " ");
  return text;
}

// All reports of one job, by who tells them: what people read, and objects for programs.
struct Reports {
  std::vector<std::pair<std::string, std::string>> texts;
  std::vector<std::pair<std::string, json>> objects;

  explicit Reports(const Job& job) {
    const std::string plan = job.plan + " --data " + job.data;
    const auto both = [&](const std::string& name, const ProcessResult& result) {
      texts.emplace_back(name, result.text);
      objects.emplace_back(name, result.json());
    };
    both("train", job.run_it("train " + plan + " --tensorboard --json --run " + job.run));
    both("resume", job.run_it("train " + plan + " --json --resume auto --run " + job.run));
    both("eval", job.run_it("eval " + plan + " --json --split test --checkpoint " + job.run));
    both("check", job.run_it("check " + job.plan + " --json"));
    both("check --run", job.run_it("check " + plan + " --json --run " + job.run));
    both("layouts", job.run_it("layouts " + plan + " --json --steps 2 --warmup 0 --grid tp=1"));
    both("drill", job.run_it("drill " + plan + " --json --tries 1 --points kill@forward:3"));
    texts.emplace_back("report", job.run_it("report " + job.run + " --markdown").out);
    texts.emplace_back("prose", joined(job.run_it("check " + job.plan + " --prose").out));
    const std::string data = "data check " + job.data + " --plan " + job.plan;
    texts.emplace_back("data check", job.run_it(data).text);
    objects.emplace_back("data check", job.run_it(data + " --json").json().at("tables").at(0));
    std::ifstream summary(job.run + "/summary.json");
    objects.emplace_back("summary.json", json::parse(summary));
    for (const char* file : {"eval.jsonl", "test_uses.jsonl"}) {
      for (const json& line : lines_of(job.run + "/" + file)) objects.emplace_back(file, line);
    }
  }
};

}  // namespace

TEST_CASE("a leak that is let in marks every report") {
  const Job job(true);
  const Reports reports(job);
  for (const auto& [name, text] : reports.texts) {
    INFO(name << "\n" << text);
    CHECK(count(text, mark) >= 1);
  }
  for (const auto& [name, object] : reports.objects) {
    INFO(name << "\n" << object.dump());
    CHECK(object.value("leak_allowed", "") == mark);
  }
  CHECK(reports.objects.size() >= 12);
  for (const json& line : lines_of(job.run + "/run.jsonl")) CHECK(line.at("leak_allowed") == 1);
  const std::string events = event_file_of(job);
  CHECK(count(events, "train/leak_allowed") == 4);  // steps
  CHECK(count(events, "validation/leak_allowed") == 1);
  // At the start, before the first step, and at the end, after the figures; those on the way are
  // marked, too.
  for (const auto& [name, text] : reports.texts) {
    if (name != "train") continue;
    const auto first_figure = text.find("validation loss");
    const auto last_figure = text.find("done: 4 steps");
    REQUIRE(first_figure != std::string::npos);
    CHECK(text.find(mark) < first_figure);
    CHECK(text.find(mark, last_figure) != std::string::npos);
    CHECK(text.find("on 100 samples (LEAK ALLOWED)\n") != std::string::npos);
  }
}

TEST_CASE("where no leak is let in no report says so") {
  const Job job(false);
  const Reports reports{job};
  CHECK(count(event_file_of(job), "train/loss") == 4);
  CHECK(count(event_file_of(job), "leak") == 0);
  for (const auto& [name, text] : reports.texts) {
    INFO(name << "\n" << text);
    CHECK(count(text, "LEAK ALLOWED") == 0);
  }
  for (const auto& [name, object] : reports.objects) {
    INFO(name << "\n" << object.dump());
    CHECK_FALSE(object.contains("leak_allowed"));
  }
}
