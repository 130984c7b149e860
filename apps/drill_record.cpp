// Reads files of a run folder, which a kill may have left half written; alters checkpoints.
#include "apps/drill_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_folder.hpp"

namespace weft {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

// Lines that are whole objects; a killed process may have left a part of one at the end.
template <typename Take>
void for_each_object(const std::string& path, Take take) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const Json object = Json::parse(line, nullptr, false);
    if (object.is_object()) take(object);
  }
}

std::vector<index_t> logged_steps(const std::string& run_folder) {
  std::vector<index_t> steps;
  for_each_object(run_folder + "/run.jsonl",
                  [&](const Json& line) { steps.push_back(line.value("step", index_t{-1})); });
  return steps;
}

}  // namespace

DrillOutcome read_outcome(const std::string& run_folder) {
  const std::string path = run_folder + "/summary.json";
  std::ifstream file(path);
  const Json summary = Json::parse(file, nullptr, false);
  require(summary.is_object() && summary.contains("state_hash"), ExitCode::failed,
          fmt::format("expected the run's summary in {}, found none", path));
  DrillOutcome outcome{.state_hash = summary.value("state_hash", ""),
                       .loss_hash = summary.value("loss_hash", ""),
                       .total_s = summary.value("total_s", 0.0),
                       .start_s = summary.value("start_s", 0.0)};
  outcome.num_saved = summary.at("checkpoints").value("saved", index_t{0});
  for_each_object(run_folder + "/run.jsonl", [&](const Json& line) {
    outcome.longest_step_s = std::max(outcome.longest_step_s, line.value("step_ms", 0.0) * 1e-3);
  });
  return outcome;
}

index_t num_logged_steps(const std::string& run_folder) {
  return static_cast<index_t>(logged_steps(run_folder).size());
}

std::string fault_of_log(const std::string& run_folder, index_t num_steps) {
  const std::vector<index_t> steps = logged_steps(run_folder);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto expected = static_cast<index_t>(i) + 1;
    if (steps[i] != expected)
      return fmt::format("run.jsonl has step {} where step {} belongs", steps[i], expected);
  }
  if (static_cast<index_t>(steps.size()) == num_steps) return "";
  return fmt::format("run.jsonl has {} steps of {}", steps.size(), num_steps);
}

std::vector<index_t> resumed_from(const std::string& run_folder) {
  std::vector<index_t> steps;
  for_each_object(run_folder + "/events.jsonl", [&](const Json& event) {
    if (event.contains("resumed_from_step"))
      steps.push_back(event.at("resumed_from_step").get<index_t>());
  });
  return steps;
}

index_t newest_checkpoint(const std::string& run_folder) {
  const auto places = list_checkpoints(run_folder + "/checkpoints");
  return places.empty() ? 0 : places.front().step;
}

std::string alter_newest_checkpoint(const std::string& run_folder, DrillDeed deed,
                                    std::mt19937_64& random) {
  const auto places = list_checkpoints(run_folder + "/checkpoints");
  require(!places.empty(), ExitCode::failed,
          fmt::format("expected a checkpoint to alter in {}, found none", run_folder));
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(places.front().path)) files.push_back(entry);
  std::sort(files.begin(), files.end());  // the system's order is no one's
  const fs::path path = files.at(random() % files.size());
  const std::uintmax_t size = fs::file_size(path);
  const std::uint64_t at = random() % size;
  const std::string name = path.parent_path().filename() / path.filename();
  if (deed == DrillDeed::tear) {
    fs::resize_file(path, at);
    return fmt::format("cut {} from {} to {} bytes", name, size, at);
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int bit = static_cast<int>(random() % 8);
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ (1 << bit)));
  file.flush();
  require(static_cast<bool>(file), ExitCode::failed,
          fmt::format("cannot flip a bit of {}", path.string()));
  return fmt::format("flipped bit {} of byte {} of {}", bit, at, name);
}

}  // namespace weft
