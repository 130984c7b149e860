// `weft data` for CIFAR-10: printing what io/cifar10_summary and io/cifar10_check find.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "apps/data_set_commands.hpp"
#include "apps/dataset_split.hpp"
#include "apps/progress_line.hpp"
#include "apps/slice_balance_output.hpp"
#include "core/error.hpp"
#include "io/cifar10_check.hpp"
#include "io/cifar10_samples.hpp"
#include "io/cifar10_summary.hpp"
#include "io/synthetic_cifar10.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

Cifar10Summary::Counts training_counts(const Cifar10Summary& summary) {
  Cifar10Summary::Counts total{};
  for (index_t file = 0; file < Cifar10::num_training_files; ++file) {
    for (index_t c = 0; c < Cifar10::num_classes; ++c) total[c] += summary.class_counts[file][c];
  }
  return total;
}

Json json_of(const PixelStatistics& statistics) {
  return {{"mean", statistics.mean}, {"std", statistics.std_dev}};
}

Json json_of(const Cifar10& data, const Cifar10Summary& summary) {
  Json files = Json::object();
  for (index_t file = 0; file < Cifar10::num_files; ++file) {
    files[Cifar10::file_names[file]] = {{"rows", data.rows_per_file()},
                                        {"class_counts", summary.class_counts[file]},
                                        {"first_labels", summary.first_labels[file]}};
  }
  return {{"dataset", "cifar10"},
          {"folder", data.folder()},
          {"official", summary.official},
          {"training", data.num_samples(Cifar10::Part::training)},
          {"test", data.num_samples(Cifar10::Part::test)},
          {"class_names", data.class_names()},
          {"training_class_counts", training_counts(summary)},
          {"files", files},
          {"training_pixels", json_of(summary.training)},
          {"test_pixels", json_of(summary.test)}};
}

void print_statistics(const char* part, const PixelStatistics& statistics, std::ostream& text) {
  text << fmt::format("{} pixels / 255: mean {:.6f}, standard deviation {:.6f}\n", part,
                      fmt::join(statistics.mean, " "), fmt::join(statistics.std_dev, " "));
}

void print(const Cifar10& data, const Cifar10Summary& summary, std::ostream& text) {
  text << fmt::format("CIFAR-10 in {}: {} training and {} test images\n", data.folder(),
                      data.num_samples(Cifar10::Part::training),
                      data.num_samples(Cifar10::Part::test))
       << (summary.official ? "all six files are the official ones, byte for byte\n"
                            : "not the official set (another version, or synthetic)\n");
  text << fmt::format("{:18}", "images of class");
  for (index_t c = 0; c < Cifar10::num_classes; ++c) text << fmt::format("{:>6}", c);
  text << '\n';
  for (index_t file = 0; file < Cifar10::num_files; ++file) {
    text << fmt::format("{:18}{:>6}\n", Cifar10::file_names[file],
                        fmt::join(summary.class_counts[file], ""));
  }
  text << fmt::format("classes: {}\n", fmt::join(data.class_names(), ", "));
  print_statistics("training", summary.training, text);
  print_statistics("test", summary.test, text);
}

constexpr std::size_t most_shown = 20;  // of a kind, to people; JSON has all

Split split_by(const std::optional<TaskPlan>& given, const Cifar10& data) {
  TaskPlan task = given.value_or(TaskPlan{});
  const index_t num_training = data.num_samples(Cifar10::Part::training);
  if (!given && task.train + task.validation > num_training) {
    task.validation = num_training / 10;
    task.train = num_training - task.validation;
  }
  return split_of(task, data);
}

Json json_of(const ImagePlace& place) {
  return {{"file", Cifar10::file_names[static_cast<std::size_t>(place.file)]},
          {"row", place.row},
          {"split", name_of(place.part)},
          {"label", place.label}};
}

Json json_of(const Cifar10& data, const Split& split, const Cifar10Check& found) {
  Json counts = Json::object(), damaged = Json::array(), equal = Json::array();
  for (int part = 0; part < num_data_parts; ++part) {
    counts[std::string(name_of(static_cast<DataPart>(part)))] =
        found.class_counts[static_cast<std::size_t>(part)];
  }
  for (const DamagedRow& row : found.damaged) {
    Json one = json_of(row.place);
    one["label_is_legal"] = row.has_label;
    one["blank"] = row.is_blank;
    damaged.push_back(one);
  }
  for (const EqualImages& group : found.equal) {
    Json places = Json::array();
    for (const ImagePlace& place : group.places) places.push_back(json_of(place));
    equal.push_back({{"images", places},
                     {"spans_splits", group.spans_parts()},
                     {"labels_differ", group.labels_differ()}});
  }
  return {{"dataset", "cifar10"},
          {"folder", data.folder()},
          {"split", Json::parse(split_record(split))},
          {"class_counts", counts},
          {"damaged_rows", damaged},
          {"equal_images", equal},
          {"leaks", found.num_leaks()}};
}

std::string text_of(const ImagePlace& place) {
  return fmt::format("{} row {} ({}, label {})",
                     Cifar10::file_names[static_cast<std::size_t>(place.file)], place.row,
                     name_of(place.part), place.label);
}

std::string text_of(const DamagedRow& row) {
  return fmt::format("{}{}{}", text_of(row.place), row.has_label ? "" : ": the label is not 0..9",
                     row.is_blank ? ": all pixels are equal" : "");
}

std::string text_of(const EqualImages& group) {
  std::vector<std::string> places;
  for (const ImagePlace& place : group.places) places.push_back(text_of(place));
  return fmt::format("{}{}{}", fmt::join(places, " = "),
                     group.spans_parts() ? "; A LEAK between splits" : "",
                     group.labels_differ() ? "; LABELS DIFFER" : "");
}

template <class One>
void print_list(const std::string& what, const std::vector<One>& list, std::ostream& text) {
  text << fmt::format("{}: {}\n", what, list.empty() ? "none" : fmt::format("{}", list.size()));
  for (std::size_t i = 0; i < std::min(list.size(), most_shown); ++i)
    text << "  " << text_of(list[i]) << '\n';
  if (list.size() > most_shown)
    text << fmt::format("  and {} more; --json has all\n", list.size() - most_shown);
}

void print(const Cifar10& data, const Split& split, Cifar10Check found, std::ostream& text) {
  text << fmt::format("CIFAR-10 in {}, split by seed {}\n{:18}", data.folder(), split.seed,
                      "images of class");
  for (index_t c = 0; c < Cifar10::num_classes; ++c) text << fmt::format("{:>6}", c);
  text << "     all\n";
  for (int part = 0; part < num_data_parts; ++part) {
    const Cifar10Check::Counts& counts = found.class_counts[static_cast<std::size_t>(part)];
    index_t all = 0;
    for (const index_t count : counts) all += count;
    if (static_cast<DataPart>(part) == DataPart::unused && all == 0) continue;
    text << fmt::format("{:18}{:>6}{:>8}\n", name_of(static_cast<DataPart>(part)),
                        fmt::join(counts, ""), all);
  }
  print_list("damaged rows", found.damaged, text);
  // Those that matter most come first.
  std::stable_partition(found.equal.begin(), found.equal.end(),
                        [](const EqualImages& group) { return group.spans_parts(); });
  print_list("groups of images that are equal in every pixel", found.equal, text);
  text << fmt::format("leaks between splits: {}\n", found.num_leaks());
}

bool is_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::any_of(Cifar10::file_names.begin(), Cifar10::file_names.end(), [&](const char* name) {
    return std::filesystem::exists(folder / name, ignored);
  });
}

int make(const DataMakeOptions& options, std::ostream& text, std::ostream& out) {
  const SyntheticCifar10Options set{.rows_per_file = options.rows.value_or(10000),
                                    .seed = options.seed};
  ProgressLine progress(text, isatty(STDERR_FILENO) != 0);
  make_synthetic_cifar10(options.folder, set, [&](index_t done, index_t all) {
    progress.show([&] {
      return fmt::format("drawing {:3} %  {} of {} images", 100 * done / all, done, all);
    });
  });
  progress.keep(fmt::format("wrote a synthetic CIFAR-10 to {}: 6 files of {} rows, seed {}",
                            options.folder, set.rows_per_file, set.seed));
  if (options.json) {
    const Json record = {{"dataset", "cifar10"},
                         {"folder", options.folder},
                         {"rows_per_file", set.rows_per_file},
                         {"seed", set.seed},
                         {"synthetic", true}};
    out << record.dump() << '\n';
  }
  return static_cast<int>(ExitCode::done);
}

int info(const std::string& path, bool json, std::ostream& text, std::ostream& out) {
  const Cifar10 data(path);
  const Cifar10Summary summary = summarise(data);
  if (json) {
    out << json_of(data, summary).dump() << '\n';
  } else {
    print(data, summary, text);
  }
  return static_cast<int>(ExitCode::done);
}

// Without a plan the images are split as a plan's default does where the set is large enough, else
// nine of ten to train.
int check_images(const std::string& path, const DataCheckOptions& options, std::ostream& text,
                 std::ostream& out) {
  const Cifar10Samples samples(path);
  const Cifar10& data = samples.images();
  const Split split = split_by(options.task, data);
  const Cifar10Check found = check(data, split);
  std::vector<index_t> without_label;
  for (const DamagedRow& row : found.damaged) {
    if (!row.has_label)
      without_label.push_back(row.place.file * data.rows_per_file() + row.place.row);
  }
  const std::vector<SliceBalance> balance = balance_of_slices(
      samples, split,
      options.slices.empty() ? std::vector<std::string>{"column:file"} : options.slices,
      without_label);
  if (options.json) {
    Json record = json_of(data, split, found);
    record["slices"] = json_of(balance);
    out << record.dump() << '\n';
  } else {
    print(data, split, found, text);
    print(balance, data.class_names(), text);
  }
  if (!found.damaged.empty()) return static_cast<int>(ExitCode::data);
  return static_cast<int>(found.num_leaks() > 0 ? ExitCode::failed : ExitCode::done);
}

}  // namespace

const DataSetCommands cifar10_commands = {.name = "cifar10",
                                          .files = "data_batch_1.bin ... test_batch.bin",
                                          .is_in = is_in,
                                          .make = make,
                                          .info = info,
                                          .check = check_images};

}  // namespace weft
