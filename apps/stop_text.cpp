// Text on stopped runs; see the header.
#include "apps/stop_text.hpp"

#include <fmt/format.h>

namespace weft {

std::string shell_word(const std::string& text) {
  constexpr const char* plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string resume_command(const RunInputs& inputs, const std::string& run_folder) {
  std::string command = "weft train " + shell_word(inputs.plan_path);
  for (const std::string& setting : inputs.overrides) command += " --set " + shell_word(setting);
  if (!inputs.data_folder.empty()) command += " --data " + shell_word(inputs.data_folder);
  return command + " --run " + shell_word(run_folder) + " --resume auto";
}

std::string stop_text(const StoppedRun& run, const RunInputs& inputs) {
  const std::string where =
      fmt::format("stopped at step {} of {} for {}", run.step, run.num_steps, name_of(run.reason));
  if (!run.checkpoint.empty()) {
    return fmt::format(
        "{}, saved {}\n  go on, on this layout or on another one, with the launcher and\n    {}\n",
        where, run.checkpoint, resume_command(inputs, run.folder));
  }
  if (run.saves_none) {
    return fmt::format(
        "{}; NOTHING IS SAVED: this plan (checkpoint.every_steps = 0, at_end = false) or this "
        "build (no HDF5) has no checkpoints\n",
        where);
  }
  return fmt::format(
      "{}; this step could not be saved (see above)\n  make room, then go on from the newest "
      "checkpoint with the launcher and\n    {}\n",
      where, resume_command(inputs, run.folder));
}

}  // namespace weft
