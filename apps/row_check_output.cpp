#include "apps/row_check_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/error.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

constexpr index_t most_shown = 20;  // groups of a kind, to people; JSON has all

Json json_of(const EqualRowGroups& found, const RowNames& names) {
  Json groups = Json::array();
  for (const EqualRows& group : found.groups) {
    Json rows = Json::array();
    for (const RowPlace& place : group.places) {
      const RowInFile at = names.place_of(place.index);
      rows.push_back({{"file", at.file},
                      {"row", at.row},
                      {"split", name_of(place.part)},
                      {"label", names.class_names.at(static_cast<std::size_t>(place.label))}});
    }
    groups.push_back({{"rows", rows},
                      {"spans_splits", group.spans_parts()},
                      {"labels_differ", group.labels_differ()}});
  }
  return {{"compared", found.compared},
          {"num_groups", found.num_groups()},
          {"num_rows", found.num_rows()},
          {"spanning_splits", found.num_spanning()},
          {"labels_differ", found.num_contradicting()},
          {"groups", groups}};
}

std::string text_of(const EqualRows& group, const RowNames& names) {
  std::vector<std::string> places;
  for (const RowPlace& place : group.places) {
    const RowInFile at = names.place_of(place.index);
    places.push_back(fmt::format("{} row {} ({}, {})", at.file, at.row, name_of(place.part),
                                 names.class_names.at(static_cast<std::size_t>(place.label))));
  }
  return fmt::format("{}{}", fmt::join(places, " = "),
                     group.labels_differ() ? "; LABELS DIFFER" : "");
}

void print_counts(const RowCheck& found, const RowNames& names, std::ostream& text) {
  text << fmt::format("{:18}", "rows of class");
  for (const std::string& name : names.class_names) text << fmt::format("{:>10}", name);
  text << "       all\n";
  for (int part = 0; part < num_data_parts; ++part) {
    const auto& counts = found.class_counts[static_cast<std::size_t>(part)];
    index_t all = 0;
    for (const index_t count : counts) all += count;
    if (static_cast<DataPart>(part) == DataPart::unused && all == 0) continue;
    text << fmt::format("{:18}{:>10}{:>10}\n", name_of(static_cast<DataPart>(part)),
                        fmt::join(counts, ""), all);
  }
}

void print_groups(const EqualRowGroups& found, std::ostream& text) {
  text << fmt::format("groups of rows equal in {}: ", found.compared);
  if (found.groups.empty()) {
    text << "none\n";
    return;
  }
  text << fmt::format("{} of {} rows; {} in two splits, {} with two labels\n", found.num_groups(),
                      found.num_rows(), found.num_spanning(), found.num_contradicting());
}

// Those that two splits share come first.
void print_list(const EqualRowGroups& found, bool only_spanning, const RowNames& names,
                std::ostream& text) {
  std::vector<const EqualRows*> list;
  for (const EqualRows& group : found.groups) {
    if (group.spans_parts() || !only_spanning) list.push_back(&group);
  }
  std::stable_partition(list.begin(), list.end(),
                        [](const EqualRows* group) { return group->spans_parts(); });
  for (index_t i = 0; i < std::min(std::ssize(list), most_shown); ++i) {
    const EqualRows& group = *list[static_cast<std::size_t>(i)];
    const char* const leak = group.spans_parts() && !only_spanning ? "; A LEAK between splits" : "";
    text << "  " << text_of(group, names) << leak << '\n';
  }
  if (std::ssize(list) > most_shown)
    text << fmt::format("  and {} more; --json has all\n", std::ssize(list) - most_shown);
}

void print_damaged(const std::vector<SkippedRows>& damaged, std::ostream& text) {
  const index_t all = num_skipped(damaged);
  text << "damaged rows, left out: " << (all == 0 ? "none" : std::to_string(all)) << '\n';
  print_places(damaged, text);
}

}  // namespace

Json json_of(const RowCheck& found, const std::vector<SkippedRows>& damaged,
             const RowNames& names) {
  Json counts = Json::object();
  for (int part = 0; part < num_data_parts; ++part) {
    counts[std::string(name_of(static_cast<DataPart>(part)))] =
        found.class_counts[static_cast<std::size_t>(part)];
  }
  return {{"class_names", names.class_names},
          {"class_counts", counts},
          {"damaged_rows", json_of(damaged)},
          {"equal_rows",
           {json_of(found.exact, names), json_of(found.but_space, names),
            json_of(found.in_some, names)}},
          {"leaks", found.num_leaks()}};
}

void print(const RowCheck& found, const std::vector<SkippedRows>& damaged, const RowNames& names,
           std::ostream& text) {
  print_counts(found, names, text);
  print_damaged(damaged, text);
  print_groups(found.exact, text);
  print_groups(found.but_space, text);
  print_list(found.but_space, false, names, text);
  print_groups(found.in_some, text);
  print_list(found.in_some, true, names, text);
  text << fmt::format("leaks between splits: {}\n", found.num_leaks());
}

int exit_code(const RowCheck& found, const std::vector<SkippedRows>& damaged) {
  if (num_skipped(damaged) > 0) return static_cast<int>(ExitCode::data);
  return static_cast<int>(found.num_leaks() > 0 ? ExitCode::failed : ExitCode::done);
}

}  // namespace weft
