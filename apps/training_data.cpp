#include "apps/training_data.hpp"

#include <fmt/format.h>

#include <utility>

#include "apps/dataset_split.hpp"
#include "core/error.hpp"
#include "io/cifar10_samples.hpp"
#include "io/tables/bank_samples.hpp"
#include "io/text/byte_samples.hpp"
#include "io/text/news_samples.hpp"

namespace weft {

namespace {

TrainingData open_cifar10(const TaskPlan& task, const std::string& folder) {
  auto samples = std::make_shared<Cifar10Samples>(folder);
  return {samples, split_of(task, samples->images())};
}

CsvFormat::FaultyRow faulty_row_of(const TaskPlan& task) {
  return task.skips_faulty_rows() ? CsvFormat::FaultyRow::skip : CsvFormat::FaultyRow::refuse;
}

TrainingData open_bank(const TaskPlan& task, const std::string& folder) {
  Bank bank(bank_table_in(folder, task.table), faulty_row_of(task));
  std::vector<SkippedRows> skipped = skipped_of(bank);
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
  return {std::move(samples), std::move(split), std::move(balance), std::move(skipped)};
}

TrainingData open_ag_news(const TaskPlan& task, const std::string& folder) {
  AgNews news(folder, faulty_row_of(task));
  std::vector<SkippedRows> skipped = skipped_of(news);
  Split split = split_of(task, news);
  auto samples =
      std::make_shared<NewsSamples>(std::move(news), split.train, task.vocabulary, task.tokens);
  LengthBuckets buckets;
  if (!task.length_buckets.empty())
    buckets = make_length_buckets(*samples, split.train, task.length_buckets);
  return {std::move(samples), std::move(split), {}, std::move(skipped), std::move(buckets)};
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

TrainingData open_training_data(const TaskPlan& task, const std::string& folder) {
  TrainingData data = open_set(task, folder);
  if (!task.skips_faulty_rows()) data.skipped.clear();
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

Sampler training_sampler(const Plan& plan, const TrainingData& data) {
  return Sampler(data.split.train, plan.batch.global, plan.batch.last, plan.numerics.seed,
                 data.balance, data.buckets);
}

}  // namespace weft
