// The run folder; see the header.
#include "io/run_log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <filesystem>

#include "core/error.hpp"

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

// Refuses a folder in which anything of a run lies; returns it otherwise.
std::string unused(std::string folder) {
  std::error_code ignored;
  require(!folder.empty(), ExitCode::usage, "--run: expected the name of a folder, found nothing");
  require(!fs::exists(folder, ignored) || fs::is_directory(folder, ignored), ExitCode::usage,
          fmt::format("--run: {} is not a folder; name another one", folder));
  for (const char* name : {"plan.toml", "run.jsonl", "summary.json", "checkpoints"}) {
    require(!fs::exists(fs::path(folder) / name, ignored), ExitCode::usage,
            fmt::format("the run folder {} already holds a run ({} is there): nothing was changed; "
                        "name another folder with --run",
                        folder, name));
  }
  return folder;
}

// Creating run.jsonl claims the folder: of two runs that start at once, one is refused.
OutputFile claim(const std::string& folder) {
  make_folder(folder);
  return OutputFile((fs::path(folder) / "run.jsonl").string(), OutputFile::Mode::create);
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

std::string RunLog::path_of(std::string_view name) const {
  return (fs::path(folder_) / name).string();
}

void RunLog::add_step(const StepRecord& record) { steps_.write_line(json_line(record)); }

void RunLog::add_evaluation(std::string_view json_object) {
  // Opened for each line: evaluations are rare.
  OutputFile file(path_of("eval.jsonl"), OutputFile::Mode::append);
  file.write_line(json_object);
  file.close();
}

void RunLog::write_split(std::string_view json_object) {
  write_file(path_of("split.json"), std::string(json_object) + "\n");
}

void RunLog::write_summary(std::string_view json_object) {
  write_file(path_of("summary.json"), std::string(json_object) + "\n");
}

}  // namespace weft
