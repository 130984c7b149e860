#include "apps/run_records.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <sstream>

#include "apps/async_record.hpp"
#include "core/error.hpp"
#include "io/extent_reader.hpp"
#include "io/step_lines.hpp"

namespace weft {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;
constexpr index_t any_step = std::numeric_limits<index_t>::max();

std::string text_of(const fs::path& path, bool is_needed) {
  std::error_code ignored;
  if (!is_needed && !fs::exists(path, ignored)) return "";
  return read_whole_file(path.string(), most_bytes);
}

std::vector<Json> objects_of(const std::string& text) {
  std::vector<Json> objects;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    Json object = Json::parse(line, nullptr, false);
    if (object.is_object()) objects.push_back(std::move(object));
  }
  return objects;
}

double number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
}

StepLine step_line(const Json& object) {
  return {.step = object.at("step"),
          .loss = number_at(object, "loss"),
          .lr = number_at(object, "lr"),
          .grad_norm = number_at(object, "grad_norm"),
          .step_ms = number_at(object, "step_ms"),
          .data_wait_ms = number_at(object, "data_wait_ms"),
          .samples = number_at(object, "samples")};
}

Json summary_of(const fs::path& path) {
  const std::string text = text_of(path, false);
  if (text.empty()) return nullptr;
  Json summary = Json::parse(text, nullptr, false);
  require(summary.is_object(), ExitCode::data,
          fmt::format("{}: expected the summary of a run, found no JSON", path.string()));
  for (const char* key : {"ranks", "step_ms", "layout"}) {
    require(summary.contains(key), ExitCode::data,
            fmt::format("{}: expected the summary of a run with \"{}\"; found one of an older weft",
                        path.string(), key));
  }
  return summary;
}

}  // namespace

RunRecords read_run(const std::string& folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  std::error_code ignored;
  require(fs::exists(path / "run.jsonl", ignored) && fs::exists(path / "plan.toml", ignored),
          ExitCode::data,
          fmt::format("{}: expected the folder of a run, with run.jsonl and plan.toml; found {}",
                      folder, fs::exists(path, ignored) ? "neither or one of them" : "nothing"));
  RunRecords run;
  run.folder = folder;
  run.name =
      path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  if (run.name.empty()) run.name = folder;
  run.plan = text_of(path / "plan.toml", true);
  run.is_async = is_async_run(folder);
  // Both as a resume would go on with them.
  for (const Json& line :
       objects_of(lines_until(text_of(path / "run.jsonl", true), any_step, LinesPerStep::one)))
    run.steps.push_back(step_line(line));
  run.evaluations =
      objects_of(lines_until(text_of(path / "eval.jsonl", false), any_step, LinesPerStep::several));
  run.events = objects_of(text_of(path / "events.jsonl", false));
  run.test_uses = objects_of(text_of(path / "test_uses.jsonl", false));
  run.summary = summary_of(path / "summary.json");
  return run;
}

}  // namespace weft
