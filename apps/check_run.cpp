#include "apps/check_run.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "apps/async_record.hpp"
#include "apps/leak_mark.hpp"
#include "apps/sample_record.hpp"
#include "core/error.hpp"
#include "io/plan_file.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

struct Row {
  std::string what;
  std::string expected;
  std::string found;
  bool agrees() const { return expected == found; }
};

Json read_summary(const std::string& run_folder) {
  require(!is_async_run(run_folder), ExitCode::usage,
          fmt::format("{} is an asynchronous run, whose workers take batches as they come; `weft "
                      "async --replay` repeats it",
                      run_folder));
  const std::string path = run_folder + "/summary.json";
  std::ifstream file(path);
  require(
      static_cast<bool>(file), ExitCode::data,
      fmt::format("{}: there is no such file; expected the folder of a run that has ended", path));
  const Json summary = Json::parse(file, nullptr, false);
  require(summary.is_object() && summary.contains("replicas") && summary.contains("layout"),
          ExitCode::data,
          fmt::format("{}: expected the summary of a run with its replicas' samples; found {}",
                      path, summary.is_object() ? "one of an older weft" : "no JSON"));
  return summary;
}

std::vector<Row> compare(const Plan& plan, const TrainingData& data, const Json& summary,
                         const Plan& done) {
  std::vector<Row> rows;
  for (const PlanDifference& one : plan_differences(plan, done))
    rows.push_back({one.key, one.before, one.now});
  if (rows.empty()) rows.push_back({"plan", plan_fingerprint(plan), plan_fingerprint(done)});
  Json now;
  mark_skipped(data.skipped, now);
  if (const std::string expected = skipped_text(now), found = skipped_text(summary);
      !expected.empty() || !found.empty())
    rows.push_back({"data", expected, found});
  const index_t first = summary.at("resumed_from_step"), last = summary.at("steps");
  rows.push_back({"steps", fmt::format("{}", plan.num_steps()), fmt::format("{}", last)});
  Plan as_run = plan;
  as_run.layout.dp = summary.at("layout").at("dp");
  const Json& replicas = summary.at("replicas");
  for (index_t dp = 0; dp < as_run.layout.dp; ++dp) {
    const SampleRecord expected = expected_record(as_run, data, dp, {first, last});
    const auto at = static_cast<std::size_t>(dp);
    const Json found = at < replicas.size() ? replicas[at] : Json::object();
    rows.push_back({fmt::format("replica {}: updates", dp), fmt::format("{}", expected.updates()),
                    fmt::format("{}", found.value("updates", index_t{0}))});
    rows.push_back({fmt::format("replica {}: samples of steps {} to {}", dp, first + 1, last),
                    fmt::format("{:016x}", expected.samples_hash()),
                    found.value("samples_hash", "none")});
  }
  return rows;
}

}  // namespace

int check_run(const RunInputs& inputs, const Plan& plan, const std::string& run_folder, bool json,
              std::ostream& text, std::ostream& out) {
  const Json summary = read_summary(run_folder);
  const Plan done = load_plan(run_folder + "/plan.toml");
  const TrainingData data = open_training_data(plan.task, data_folder_of(inputs, plan));
  bool agree = true;
  Json all = Json::array();
  for (const Row& row : compare(plan, data, summary, done)) {
    agree = agree && row.agrees();
    text << fmt::format(
        "{:<40} {}{}\n", row.what, row.found,
        row.agrees() ? "" : fmt::format("  DIFFERS: the plan says {}", row.expected));
    all.push_back({{"what", row.what},
                   {"expected", row.expected},
                   {"found", row.found},
                   {"agrees", row.agrees()}});
  }
  text << (agree ? "the run did what the plan says\n" : "the run did not do what the plan says\n");
  say_leak(plan.task, text);
  say_skipped(data.skipped, text);
  if (json) {
    Json report{{"plan", plan.name}, {"run", run_folder}, {"agrees", agree}, {"compared", all}};
    mark_leak(plan.task, report);
    mark_skipped(data.skipped, report);
    out << report.dump() << '\n';
  }
  return static_cast<int>(agree ? ExitCode::done : ExitCode::failed);
}

}  // namespace weft
