#include "apps/kept_checkpoints.hpp"

#include <array>
#include <filesystem>
#include <limits>

#include "io/extent_reader.hpp"
#include "io/plan_file.hpp"
#include "io/step_lines.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t most_log_bytes = std::uint64_t{1} << 30;

// The folder above, by the name that was given, or else by the one that links lead to.
std::optional<fs::path> run_of(const std::string& checkpoints) {
  std::error_code error;
  const fs::path given = (fs::absolute(checkpoints, error) / "").lexically_normal().parent_path();
  for (const fs::path& folder : std::array{given, fs::weakly_canonical(given, error)}) {
    if (fs::exists(folder.parent_path() / "plan.toml", error)) return folder.parent_path();
  }
  return std::nullopt;
}

}  // namespace

Retention retention_of(const Plan& plan, const RunHistory& history) {
  return {.keep = plan.checkpoint.keep,
          .keep_every = plan.checkpoint.keep_every,
          .keep_best = plan.checkpoint.keep_best,
          .ranked = history.steps_by_worth(plan.task.target)};
}

std::optional<Retention> recorded_retention(const std::string& checkpoints) {
  const std::optional<fs::path> run = run_of(checkpoints);
  if (!run) return std::nullopt;
  const Plan plan = load_plan(*run / "plan.toml");
  RunHistory history;
  const fs::path log = *run / "eval.jsonl";
  std::error_code error;
  if (fs::exists(log, error)) {
    // A run may be writing its last line.
    history.read("", lines_until(read_whole_file(log.string(), most_log_bytes),
                                 std::numeric_limits<index_t>::max(), LinesPerStep::several));
  }
  return retention_of(plan, history);
}

}  // namespace weft
