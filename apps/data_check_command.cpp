// Printing what io/cifar10_check finds; see the header.
#include "apps/data_check_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/error.hpp"
#include "io/cifar10_check.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_shown = 20;  // of a kind, to people; JSON has all

Split split_of(const Cifar10& data, const std::optional<TaskPlan>& given) {
  TaskPlan task = given.value_or(TaskPlan{});
  const index_t num_training = data.num_samples(Cifar10::Part::training);
  if (!given && task.train + task.validation > num_training) {
    task.validation = num_training / 10;
    task.train = num_training - task.validation;
  }
  return make_split(num_training, task.train, task.validation, task.split_seed);
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

}  // namespace

int data_check(const std::string& path, const std::optional<TaskPlan>& task, bool json,
               std::ostream& text, std::ostream& out) {
  const Cifar10 data(path);
  const Split split = split_of(data, task);
  const Cifar10Check found = check(data, split);
  if (json)
    out << json_of(data, split, found).dump() << '\n';
  else
    print(data, split, found, text);
  if (!found.damaged.empty()) return static_cast<int>(ExitCode::data);
  return static_cast<int>(found.num_leaks() > 0 ? ExitCode::failed : ExitCode::done);
}

}  // namespace weft
