// Recognizing a data set by its files; see the header.
#include "apps/data_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"

namespace weft {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const DataSetCommands*, 4> all_sets = {&cifar10_commands, &bank_commands,
                                                            &news_commands, &text_commands};

const DataSetCommands& set_named(const std::string& name) {
  for (const DataSetCommands* set : all_sets) {
    if (set->name == name) return *set;
  }
  throw Error(ExitCode::usage, fmt::format("the data set {}: expected one of {}", name,
                                           fmt::join(data_set_names(), ", ")));
}

// A lone file can only be of a set that may be one file.
const DataSetCommands& set_of_file(const fs::path& file) {
  if (file.extension() == ".csv") return bank_commands;
  if (file.extension() == ".txt") return text_commands;
  throw Error(
      ExitCode::usage,
      fmt::format("{} is a file whose name does not tell its data set: expected a folder, a "
                  "table (.csv) or a text (.txt), or --dataset",
                  file.string()));
}

std::vector<const DataSetCommands*> sets_in(const fs::path& folder) {
  std::vector<const DataSetCommands*> found;
  const auto is_direct = [&](const DataSetCommands* set) { return set->is_in(folder); };
  for (const DataSetCommands* set : all_sets) {
    // Other sets have *.txt beside them that describe them.
    const bool counts = set != &text_commands || found.empty();
    if ((counts && is_direct(set)) || set->is_in(folder / set->name)) found.push_back(set);
  }
  return found;
}

const DataSetCommands& find_set(const std::string& path, const std::string& dataset) {
  if (!dataset.empty()) return set_named(dataset);
  std::error_code ignored;
  require(fs::exists(path, ignored), ExitCode::data,
          fmt::format("the data folder {} does not exist", path.empty() ? "\"\"" : path));
  if (!fs::is_directory(path)) return set_of_file(path);
  const std::vector<const DataSetCommands*> found = sets_in(path);
  if (found.size() == 1) return *found.front();
  std::vector<std::string> list;
  for (const DataSetCommands* set : found) list.emplace_back(set->name);
  require(found.empty(), ExitCode::usage,
          fmt::format("{} holds several data sets: {}; choose one by --dataset, or name its folder",
                      path, fmt::join(list, ", ")));
  for (const DataSetCommands* set : all_sets)
    list.push_back(fmt::format("{} ({})", set->name, set->files));
  throw Error(
      ExitCode::data,
      fmt::format("{} holds no data set: expected the files of one in it, or in a subfolder "
                  "of the set's name: {}; weft data make SET DIR makes a synthetic one",
                  path, fmt::join(list, ", ")));
}

}  // namespace

std::vector<std::string> data_set_names() {
  std::vector<std::string> names;
  for (const DataSetCommands* set : all_sets) names.emplace_back(set->name);
  return names;
}

int data_make(const DataMakeOptions& options, std::ostream& text, std::ostream& out) {
  const DataSetCommands& set = set_named(options.dataset);
  require(!options.folder.empty(), ExitCode::usage, "data make: expected a folder to write into");
  const auto refuse = [&](bool is_given, bool is_known, const char* option) {
    require(!is_given || is_known, ExitCode::usage,
            fmt::format("data make {}: {} is no option of this set", set.name, option));
  };
  refuse(options.rows.has_value(), &set != &text_commands, "--rows");
  refuse(options.bytes.has_value(), &set == &text_commands, "--bytes");
  refuse(options.table.has_value(), &set == &bank_commands, "--table");
  return set.make(options, text, out);
}

int data_info(const std::string& path, const std::string& dataset, bool json, std::ostream& text,
              std::ostream& out) {
  return find_set(path, dataset).info(path, json, text, out);
}

int data_check(const std::string& path, const std::string& dataset, const DataCheckOptions& options,
               std::ostream& text, std::ostream& out) {
  const std::optional<TaskPlan>& task = options.task;
  require(!task || dataset.empty() || dataset == task->dataset, ExitCode::usage,
          fmt::format("--dataset {}, but the plan's task.dataset is {}: leave one of them out",
                      dataset, task ? task->dataset : ""));
  return find_set(path, task ? task->dataset : dataset).check(path, options, text, out);
}

}  // namespace weft
