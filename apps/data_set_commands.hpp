// What `weft data` does with one data set. A set is a file data_NAME.cpp with the three functions
// and one constant below; data_command picks the one that a folder holds.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

struct DataMakeOptions {
  std::string dataset = "cifar10";
  std::string folder = {};
  // What is not given is as the set's maker has it; what the set does not have is refused.
  std::optional<index_t> rows = {};       // cifar10: of a file; ag_news: for training
  std::optional<index_t> bytes = {};      // text
  std::optional<std::string> table = {};  // bank: as task.table
  std::uint64_t seed = 1;
  bool json = false;
};

struct DataCheckOptions {
  std::optional<TaskPlan> task = {};  // whose split is meant; else one that fits the set
  // Words of io/sample_slices: classes are counted in such slices, too. Empty: as suits the set.
  std::vector<std::string> slices = {};
  bool json = false;
};

// Text for people goes to `text`, or with `json` one line to `out` in its place. All three throw
// what goes wrong as an Error and return the exit code.
struct DataSetCommands {
  std::string_view name;   // as task.dataset
  std::string_view files;  // that it is told by, for messages
  // Whether its files lie in the folder itself.
  bool (*is_in)(const std::filesystem::path& folder);
  // Writes a synthetic set; refuses existing files.
  int (*make)(const DataMakeOptions& options, std::ostream& text, std::ostream& out);
  // What there is, in figures. `path`: the folder, one that has a subfolder of the set's name or,
  // for sets of one file, that file.
  int (*info)(const std::string& path, bool json, std::ostream& text, std::ostream& out);
  // What is wrong: 5 for damaged rows, else 1 for samples that two parts of the split share, else
  // 0.
  int (*check)(const std::string& path, const DataCheckOptions& options, std::ostream& text,
               std::ostream& out);
};

extern const DataSetCommands cifar10_commands;
extern const DataSetCommands bank_commands;
extern const DataSetCommands news_commands;
extern const DataSetCommands text_commands;

}  // namespace weft
