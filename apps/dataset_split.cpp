#include "apps/dataset_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "io/tables/row_split.hpp"

namespace weft {

namespace {

// Training samples 0 .. num_training - 1 are divided, behind them is the set's own test part.
Split split_with_own_test(const TaskPlan& task, index_t num_training, index_t num_samples) {
  Split split = make_split(num_training, task.train, task.validation, task.split_seed);
  split.test = all_of({num_training, num_samples});
  return split;
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// Where a split would fit, were it not for faulty rows, they are what to look at.
void require_enough(index_t asked, index_t num_rows, const SkippedRows& file) {
  const index_t left_out = file.skipped.total();
  if (left_out == 0 || asked <= num_rows) return;
  const CsvFault& first = file.skipped.first.front();
  throw Error(
      ExitCode::usage,
      fmt::format("task.split asks for {} rows of {}, which has {} sound ones; {} that "
                  "break its form are left out, the first in line {} ({}): mend the file, "
                  "or ask for at most {} rows. weft data check without a plan lists them",
                  asked, file.file, num_rows, left_out, first.line, name_of(first.kind), num_rows));
}

Split rows_of(const TaskPlan& task, const Bank& bank) {
  const RowCounts counts{task.train, task.validation, task.test};
  if (task.split_kind == "time") return split_by_time(bank.num_rows(), counts);
  if (task.split_kind == "group")
    return split_by_group(bank.groups(task.split_by), counts, task.split_seed);
  return split_at_random(bank.num_rows(), counts, task.split_seed);
}

}  // namespace

Split split_of(const TaskPlan& task, const Cifar10& images) {
  const index_t num_training = images.num_samples(Cifar10::Part::training);
  return split_with_own_test(task, num_training,
                             num_training + images.num_samples(Cifar10::Part::test));
}

// Groups are taken whole, so a part may have some rows more than the plan says; the last ones are
// left out.
Split split_of(const TaskPlan& task, const Bank& bank) {
  require_enough(task.train + task.validation + task.test, bank.num_rows(),
                 skipped_of(bank).front());
  Split split = rows_of(task, bank);
  const auto shorten = [](std::vector<index_t>& list, index_t count) {
    list.resize(std::min(list.size(), static_cast<std::size_t>(count)));
  };
  shorten(split.train, task.train);
  shorten(split.validation, task.validation);
  shorten(split.test, task.test);
  return split;
}

Split split_of(const TaskPlan& task, const AgNews& news) {
  const index_t num_training = news.num_samples(AgNews::Part::training);
  require_enough(task.train + task.validation, num_training, skipped_of(news).front());
  return split_with_own_test(task, num_training,
                             num_training + news.num_samples(AgNews::Part::test));
}

std::vector<SkippedRows> skipped_of(const Bank& bank) {
  return {{file_name(bank.path()), bank.skipped()}};
}

std::vector<SkippedRows> skipped_of(const AgNews& news) {
  std::vector<SkippedRows> files;
  for (const AgNews::Part part : {AgNews::Part::training, AgNews::Part::test})
    files.push_back({file_name(news.path(part)), news.skipped(part)});
  return files;
}

std::string bank_table_in(const std::string& folder, const std::string& table) {
  namespace fs = std::filesystem;
  const std::string file = table + ".csv";
  for (const fs::path& place : {fs::path(folder) / file, fs::path(folder) / "bank" / file}) {
    if (fs::exists(place)) return place.string();
  }
  throw Error(
      ExitCode::data,
      fmt::format("{}: expected {} in it or in its subfolder bank (task.table)", folder, file));
}

}  // namespace weft
