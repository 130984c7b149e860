// The run folder; see the header.
#include "io/run_log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "core/error.hpp"
#include "io/step_lines.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  const std::string text = fmt::format("{}", value);
  // Readers take "-0" and "1" for integers, and lose the sign of the first.
  const bool looks_whole = text.find_first_not_of("-0123456789") == std::string::npos;
  return looks_whole ? text + ".0" : text;
}

void require_folder(const std::string& folder) {
  std::error_code ignored;
  require(!folder.empty(), ExitCode::usage, "--run: expected the name of a folder, found nothing");
  require(!fs::exists(folder, ignored) || fs::is_directory(folder, ignored), ExitCode::usage,
          fmt::format("--run: {} is not a folder; name another one", folder));
}

// Refuses a folder in which anything of a run lies; returns it otherwise.
std::string unused(std::string folder) {
  require_folder(folder);
  std::error_code ignored;
  for (const char* name : {"plan.toml", "run.jsonl", "summary.json", "checkpoints"}) {
    require(!fs::exists(fs::path(folder) / name, ignored), ExitCode::usage,
            fmt::format("the run folder {} already holds a run ({} is there): nothing was changed; "
                        "name another folder with --run, or go on with --resume auto",
                        folder, name));
  }
  return folder;
}

// Creating run.jsonl claims the folder: of two runs that start at once, one is refused.
OutputFile claim(const std::string& folder) {
  make_folder(folder);
  return OutputFile((fs::path(folder) / "run.jsonl").string(), OutputFile::Mode::create);
}

// A file of a run that is there already; none where it is missing.
std::optional<std::string> read_if_there(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  require(fs::is_regular_file(path, ignored), ExitCode::usage,
          fmt::format("{}: expected a file of a run, found something else; remove it, or name "
                      "another folder with --run",
                      path.string()));
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  require(file.good(), ExitCode::usage,
          fmt::format("{}: expected a file of a run, found one that cannot be read; permit reading "
                      "it, or name another folder with --run",
                      path.string()));
  return text;
}

// What a run that was killed had begun to write (AtomicFile's names).
void remove_unfinished(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find(".tmp-") == std::string::npos) continue;
    for (const char* start : {"plan", "run.jsonl", "eval.jsonl", "split.json", "summary.json"}) {
      if (name.starts_with(start)) fs::remove(entry.path(), ignored);
    }
  }
}

void remove_summary(const fs::path& folder) {
  std::error_code status;
  fs::remove(folder / "summary.json", status);
  require(!status, ExitCode::failed,
          fmt::format("cannot remove {}, which is of an earlier end of the run: {}",
                      (folder / "summary.json").string(), status.message()));
}

// The plan of now in plan.toml; the one before it gets the next free number.
void replace_plan(const fs::path& folder, std::string_view plan_text) {
  const std::optional<std::string> old = read_if_there(folder / "plan.toml");
  if (old == plan_text) return;
  if (old) {
    const auto numbered = [&](index_t n) { return folder / fmt::format("plan-{}.toml", n); };
    index_t next = 1;
    std::error_code ignored;
    while (fs::exists(numbered(next), ignored)) ++next;
    // A plan never equals the one before it, unless a kill came between the two writes below.
    const bool is_kept = next > 1 && read_if_there(numbered(next - 1)) == old;
    if (!is_kept) write_file(numbered(next).string(), *old);
  }
  write_file((folder / "plan.toml").string(), plan_text);
}

// The file's text as it is to be; none where that is what it is.
std::optional<std::string> cut(const fs::path& path, index_t num_done,
                               LinesPerStep lines_per_step) {
  const std::optional<std::string> text = read_if_there(path);
  if (!text) return std::nullopt;
  std::string kept = lines_until(*text, num_done, lines_per_step);
  if (kept == *text) return std::nullopt;
  return kept;
}

// Half a line at the end of a file that is never cut would spoil the next one.
void end_last_line(const fs::path& path) {
  const std::optional<std::string> text = read_if_there(path);
  if (!text || text->empty() || text->ends_with('\n')) return;
  OutputFile file(path.string(), OutputFile::Mode::append);
  file.write("\n");
  file.close();
}

}  // namespace

std::string json_line(const StepRecord& record) {
  std::string line = fmt::format(
      R"({{"step":{},"epoch":{},"loss":{},"loss_bits":"{:016x}","lr":{},"grad_norm":{},)"
      R"("step_ms":{},"data_wait_ms":{},"samples":{})",
      record.step, record.epoch, number(record.loss), std::bit_cast<std::uint64_t>(record.loss),
      number(record.lr), number(record.grad_norm), number(record.step_ms),
      number(record.data_wait_ms), record.num_real);
  for (const auto& [name, value] : record.more)
    line += fmt::format(R"(,"{}":{})", name, number(value));
  return line + "}";
}

std::string default_run_folder(std::string_view plan_name) {
  return fmt::format("runs/{}-{:%Y%m%d-%H%M%S}", plan_name, fmt::gmtime(std::time(nullptr)));
}

RunLog::RunLog(std::string folder, std::string_view plan_text)
    : folder_(unused(std::move(folder))), steps_(claim(folder_)) {
  write_file(path_of("plan.toml"), plan_text);
}

RunLog::RunLog(std::string folder, OutputFile steps, bool has_old_summary)
    : folder_(std::move(folder)), steps_(std::move(steps)), has_old_summary_(has_old_summary) {}

RunLog RunLog::resume(std::string folder, std::string_view plan_text, index_t num_done) {
  require_folder(folder);
  make_folder(folder);
  const fs::path path(folder);
  remove_unfinished(path);
  // Whole new files in place of the old ones, not truncation: lines to drop can lie anywhere.
  const auto evaluations = cut(path / "eval.jsonl", num_done, LinesPerStep::several);
  const auto steps = cut(path / "run.jsonl", num_done, LinesPerStep::one);
  replace_plan(path, plan_text);
  if (evaluations || steps) remove_summary(path);
  if (evaluations) write_file((path / "eval.jsonl").string(), *evaluations);
  if (steps) write_file((path / "run.jsonl").string(), *steps);
  end_last_line(path / "events.jsonl");
  OutputFile log((path / "run.jsonl").string(), OutputFile::Mode::append);
  std::error_code ignored;
  const bool has_summary = fs::exists(path / "summary.json", ignored);
  return {std::move(folder), std::move(log), has_summary};
}

std::string RunLog::path_of(std::string_view name) const {
  return (fs::path(folder_) / name).string();
}

std::string RunLog::text_of(std::string_view name) const { return text_of(folder_, name); }

std::string RunLog::text_of(const std::string& folder, std::string_view name) {
  return read_if_there(fs::path(folder) / name).value_or("");
}

void RunLog::add_step(const StepRecord& record) {
  if (has_old_summary_) remove_summary(folder_);
  has_old_summary_ = false;
  steps_.write_line(json_line(record));
}

// Opened for each line: these are rare. On the disk at once: which checkpoints stay is decided by
// evaluations.
void RunLog::append_line(std::string_view name, std::string_view json_object) {
  std::error_code ignored;
  const bool is_new = !fs::exists(path_of(name), ignored);
  OutputFile file(path_of(name), OutputFile::Mode::append);
  file.write_line(json_object);
  file.sync();
  file.close();
  if (is_new) sync_folder(folder_);
}

void RunLog::add_evaluation(std::string_view json_object) {
  append_line("eval.jsonl", json_object);
}

void RunLog::add_event(std::string_view json_object) { append_line("events.jsonl", json_object); }

void RunLog::write_split(std::string_view json_object) {
  write_file(path_of("split.json"), std::string(json_object) + "\n");
}

void RunLog::write_summary(std::string_view json_object) {
  write_file(path_of("summary.json"), std::string(json_object) + "\n");
}

}  // namespace weft
