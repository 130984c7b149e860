#include "apps/training_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/dataset_split.hpp"
#include "core/error.hpp"
#include "io/cifar10_samples.hpp"
#include "io/tables/bank_samples.hpp"
#include "io/tables/row_split.hpp"
#include "io/text/byte_samples.hpp"
#include "io/text/news_samples.hpp"

namespace weft {

namespace {

// Training samples 0 .. num_training - 1 are divided, behind them is the set's own test part.
Split split_with_own_test(const TaskPlan& task, index_t num_training, index_t num_samples) {
  Split split = make_split(num_training, task.train, task.validation, task.split_seed);
  split.test = all_of({num_training, num_samples});
  return split;
}

TrainingData open_cifar10(const TaskPlan& task, const std::string& folder) {
  auto samples = std::make_shared<Cifar10Samples>(folder);
  const index_t num_training = samples->images().num_samples(Cifar10::Part::training);
  return {samples, split_with_own_test(task, num_training, samples->num_samples())};
}

Split rows_of(const TaskPlan& task, const Bank& bank) {
  const RowCounts counts{task.train, task.validation, task.test};
  if (task.split_kind == "time") return split_by_time(bank.num_rows(), counts);
  if (task.split_kind == "group")
    return split_by_group(bank.groups(task.split_by), counts, task.split_seed);
  return split_at_random(bank.num_rows(), counts, task.split_seed);
}

TrainingData open_bank(const TaskPlan& task, const std::string& folder) {
  Bank bank(bank_table_in(folder, task.table));
  Split split = split_of(task, bank);
  ClassBalance balance;
  if (task.class_weights == "balanced") {
    for (const double weight : class_weights(bank.labels(), split.train, 2))
      balance.weights.push_back(static_cast<float>(weight));
  }
  balance.rare_share = task.rare_share;
  for (const index_t row : split.train) {
    if (bank.labels()[static_cast<std::size_t>(row)] == 1) balance.rare.push_back(row);
  }
  auto samples = std::make_shared<BankSamples>(std::move(bank), split.train, task.allow_leak);
  return {std::move(samples), std::move(split), std::move(balance)};
}

TrainingData open_ag_news(const TaskPlan& task, const std::string& folder) {
  AgNews news(folder);
  Split split = split_of(task, news);
  auto samples =
      std::make_shared<NewsSamples>(std::move(news), split.train, task.vocabulary, task.tokens);
  return {std::move(samples), std::move(split)};
}

// The first windows of each part, as many as the plan asks for.
TrainingData open_text(const TaskPlan& task, const std::string& folder) {
  auto samples = std::make_shared<ByteSamples>(
      ByteText(folder, task.tokens, {task.train, task.validation, task.test}));
  const auto first = [&](ByteText::Part part, const char* key, index_t count) {
    const Range all = samples->samples_of(part);
    require(
        count <= all.size(), ExitCode::usage,
        fmt::format("task.split {} = {}: that part of {} has {} windows of {} bytes; ask for fewer "
                    "samples or a smaller task.tokens",
                    key, count, samples->folder(), all.size(), task.tokens));
    return all_of({all.begin, all.begin + count});
  };
  Split split;
  split.train = first(ByteText::Part::training, "train", task.train);
  split.validation = first(ByteText::Part::validation, "validation", task.validation);
  split.test = first(ByteText::Part::test, "test", task.test);
  return {std::move(samples), std::move(split)};
}

TrainingData open_set(const TaskPlan& task, const std::string& folder) {
  if (task.dataset == "bank") return open_bank(task, folder);
  if (task.dataset == "ag_news") return open_ag_news(task, folder);
  if (task.dataset == "text") return open_text(task, folder);
  return open_cifar10(task, folder);
}

}  // namespace

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

TrainingData open_training_data(const TaskPlan& task, const std::string& folder) {
  TrainingData data = open_set(task, folder);
  // What the model was built for is what comes.
  const SampleForm form = data.samples->form();
  const SampleShape shape = sample_shape(task);
  require(form.features == shape.features() && form.tokens == shape.tokens &&
              form.labels == shape.labels,
          ExitCode::failed,
          fmt::format(
              "{}: a sample is {} numbers, {} tokens and {} labels, where the plan's model takes "
              "{}, {} and {}",
              data.samples->folder(), form.features, form.tokens, form.labels, shape.features(),
              shape.tokens, shape.labels));
  return data;
}

}  // namespace weft
