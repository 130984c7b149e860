// `weft data` for AG News.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "apps/data_set_commands.hpp"
#include "apps/dataset_split.hpp"
#include "apps/row_check_output.hpp"
#include "apps/slice_balance_output.hpp"
#include "core/error.hpp"
#include "io/text/news_check.hpp"
#include "io/text/news_samples.hpp"
#include "io/text/synthetic_news.hpp"

namespace weft {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Part = AgNews::Part;

const std::vector<std::string> class_names{AgNews::class_names.begin(), AgNews::class_names.end()};

bool is_in(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / AgNews::test_file, ignored) ||
         std::any_of(AgNews::training_files.begin(), AgNews::training_files.end(),
                     [&](const char* name) { return fs::exists(folder / name, ignored); });
}

std::string file_name(const AgNews& data, Part part) {
  return fs::path(data.path(part)).filename().string();
}

struct NewsFigures {
  std::vector<index_t> class_counts = std::vector<index_t>(AgNews::num_classes, 0);
  index_t num_words = 0;   // of all texts
  index_t most_words = 0;  // of one
};

NewsFigures figures_of(const AgNews& data, Part part) {
  NewsFigures figures;
  CsvRow row;
  for (index_t i = 0; i < data.num_samples(part); ++i) {
    ++figures
          .class_counts[static_cast<std::size_t>(data.labels(part)[static_cast<std::size_t>(i)])];
    data.read_into(part, i, row);
    index_t words = 0;
    for (const std::size_t field : {1, 2}) {
      for_each_word(row.fields[field], [&](std::string_view) {
        ++words;
        return true;
      });
    }
    figures.num_words += words;
    figures.most_words = std::max(figures.most_words, words);
  }
  return figures;
}

int make(const DataMakeOptions& options, std::ostream& text, std::ostream& out) {
  SyntheticNewsOptions set;
  set.training_rows = options.rows.value_or(set.training_rows);
  set.test_rows = std::max<index_t>(1, set.training_rows / 10);
  set.seed = options.seed;
  make_synthetic_news(options.folder, set);
  text << fmt::format(
      "wrote synthetic news to {}: {} rows for training, {} for the test, seed {}\n",
      options.folder, set.training_rows, set.test_rows, set.seed);
  if (options.json) {
    const Json record = {
        {"dataset", "ag_news"},  {"folder", options.folder}, {"training", set.training_rows},
        {"test", set.test_rows}, {"seed", set.seed},         {"synthetic", true}};
    out << record.dump() << '\n';
  }
  return static_cast<int>(ExitCode::done);
}

int info(const std::string& path, bool json, std::ostream& text, std::ostream& out) {
  const AgNews data(path);
  const index_t num_training = data.num_samples(Part::training);
  const WordCounts words = count_words(data, all_of({0, num_training}));
  Json record = {{"dataset", "ag_news"},
                 {"folder", path},
                 {"training", num_training},
                 {"test", data.num_samples(Part::test)},
                 {"class_names", class_names},
                 {"different_training_words", words.counts().size()},
                 {"fingerprint", data.fingerprint()}};
  if (!json) {
    text << fmt::format("AG News: {} training texts ({}) and {} for the test\n{:18}", num_training,
                        data.path(Part::training), data.num_samples(Part::test), "texts of class");
    for (const std::string& name : class_names) text << fmt::format("{:>10}", name);
    text << "     words of a text: mean  most\n";
  }
  for (const Part part : {Part::training, Part::test}) {
    const NewsFigures figures = figures_of(data, part);
    const double mean =
        static_cast<double>(figures.num_words) / static_cast<double>(data.num_samples(part));
    record["files"][file_name(data, part)] = {{"rows", data.num_samples(part)},
                                              {"class_counts", figures.class_counts},
                                              {"mean_words", mean},
                                              {"most_words", figures.most_words}};
    if (!json)
      text << fmt::format("{:18}{:>10}{:>26.1f}{:>6}\n", file_name(data, part),
                          fmt::join(figures.class_counts, ""), mean, figures.most_words);
  }
  if (json)
    out << record.dump() << '\n';
  else
    text << fmt::format("different words of the training texts: {}\nfingerprint {}\n",
                        words.counts().size(), data.fingerprint());
  return static_cast<int>(ExitCode::done);
}

// Without a plan nine of ten training texts are to train, at random by a plan's default seed.
Split split_without_plan(const AgNews& data) {
  TaskPlan task;
  task.validation = data.num_samples(Part::training) / 10;
  task.train = data.num_samples(Part::training) - task.validation;
  return split_of(task, data);
}

// A file's rows have no order that means something; how long they are does.
const std::string usual_slices = "column:tokens";

int check_texts(const std::string& path, const DataCheckOptions& options, std::ostream& text,
                std::ostream& out) {
  const std::optional<TaskPlan>& task = options.task;
  AgNews data(path, CsvFormat::FaultyRow::skip);
  const Split split = task ? split_of(*task, data) : split_without_plan(data);
  const RowCheck found = check(data, split);
  const std::vector<SkippedRows> damaged = skipped_of(data);
  const index_t num_training = data.num_samples(Part::training);
  const RowNames names = {
      [num_training, training = file_name(data, Part::training),
       test = file_name(data, Part::test)](index_t index) {
        return index < num_training ? RowInFile{training, index}
                                    : RowInFile{test, index - num_training};
      },
      class_names};
  const TaskPlan sizes = task.value_or(TaskPlan{});
  const NewsSamples samples(std::move(data), split.train, sizes.vocabulary, sizes.tokens);
  const std::vector<SliceBalance> balance = balance_of_slices(
      samples, split, options.slices.empty() ? std::vector{usual_slices} : options.slices);
  if (options.json) {
    Json record = {
        {"dataset", "ag_news"}, {"folder", path}, {"split", Json::parse(split_record(split))}};
    record.update(json_of(found, damaged, names));
    record["slices"] = json_of(balance);
    out << record.dump() << '\n';
  } else {
    text << fmt::format("AG News in {}, split by seed {}\n", path, split.seed);
    print(found, damaged, names, text);
    print(balance, class_names, text);
  }
  return exit_code(found, damaged);
}

}  // namespace

const DataSetCommands news_commands = {.name = "ag_news",
                                       .files = "train.csv or train_subset.csv, and test.csv",
                                       .is_in = is_in,
                                       .make = make,
                                       .info = info,
                                       .check = check_texts};

}  // namespace weft
