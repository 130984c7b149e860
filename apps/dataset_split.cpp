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
  return split_with_own_test(task, num_training,
                             num_training + news.num_samples(AgNews::Part::test));
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
