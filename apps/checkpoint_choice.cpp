#include "apps/checkpoint_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_reader.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "run.jsonl", ignored) || fs::exists(folder / "plan.toml", ignored);
}

std::string run_of(const fs::path& checkpoints) {
  const bool is_in_run =
      checkpoints.filename() == "checkpoints" && is_run(checkpoints.parent_path());
  return is_in_run ? checkpoints.parent_path().string() : std::string();
}

}  // namespace

CheckpointChoice choose_checkpoint(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::canonical(path, error);
  require(
      !error && fs::is_directory(folder, error), ExitCode::data,
      fmt::format("--checkpoint {}: expected the folder of a checkpoint (RUN/checkpoints/step-*) "
                  "or of a run, found {}",
                  path, fs::exists(path, error) ? "something else" : "nothing"));
  const bool is_run_folder = fs::is_directory(folder / "checkpoints", error);
  const fs::path checkpoints = is_run_folder ? folder / "checkpoints" : folder;
  std::vector<CheckpointPlace> all = list_checkpoints(checkpoints.string());
  if (is_run_folder || !all.empty()) {
    require(!all.empty(), ExitCode::data,
            fmt::format("--checkpoint {}: {} holds no checkpoint", path, checkpoints.string()));
    std::reverse(all.begin(), all.end());
    return {std::move(all), run_of(checkpoints)};
  }
  require(
      fs::exists(folder / manifest_name, error), ExitCode::data,
      fmt::format("--checkpoint {}: expected a checkpoint or a run folder, found a folder without "
                  "{} and without checkpoints",
                  path, manifest_name));
  return {{{0, folder.string()}}, run_of(folder.parent_path())};
}

}  // namespace weft
