// Printing what io knows about data sets; see the header.
#include "apps/data_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "apps/progress_line.hpp"
#include "core/error.hpp"
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

}  // namespace

int data_make(const DataMakeOptions& options, std::ostream& text, std::ostream& out) {
  require(options.dataset == "cifar10", ExitCode::usage,
          fmt::format("data make: expected the data set cifar10, found {}", options.dataset));
  require(!options.folder.empty(), ExitCode::usage, "data make: expected a folder to write into");
  ProgressLine progress(text, isatty(STDERR_FILENO) != 0);
  make_synthetic_cifar10(
      options.folder, {options.rows_per_file, options.seed}, [&](index_t done, index_t all) {
        progress.show([&] {
          return fmt::format("drawing {:3} %  {} of {} images", 100 * done / all, done, all);
        });
      });
  progress.keep(fmt::format("wrote a synthetic CIFAR-10 to {}: 6 files of {} rows, seed {}",
                            options.folder, options.rows_per_file, options.seed));
  if (options.json) {
    const Json record = {{"dataset", "cifar10"},
                         {"folder", options.folder},
                         {"rows_per_file", options.rows_per_file},
                         {"seed", options.seed},
                         {"synthetic", true}};
    out << record.dump() << '\n';
  }
  return static_cast<int>(ExitCode::done);
}

int data_info(const std::string& path, bool json, std::ostream& text, std::ostream& out) {
  const Cifar10 data(path);
  const Cifar10Summary summary = summarise(data);
  if (json) {
    out << json_of(data, summary).dump() << '\n';
  } else {
    print(data, summary, text);
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace weft
