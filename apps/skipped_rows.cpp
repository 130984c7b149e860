#include "apps/skipped_rows.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* key = "faulty_rows";

std::string count_text(index_t left_out) {
  return fmt::format("faulty rows, left out (task.faulty_rows): {}",
                     left_out == 0 ? "none" : std::to_string(left_out));
}

}  // namespace

index_t num_skipped(const std::vector<SkippedRows>& files) {
  index_t all = 0;
  for (const SkippedRows& one : files) all += one.skipped.total();
  return all;
}

Json json_of(const std::vector<SkippedRows>& files) {
  Json list = Json::array();
  for (const SkippedRows& one : files) {
    Json kinds = Json::object(), first = Json::array();
    for (int kind = 0; kind < num_csv_fault_kinds; ++kind) {
      const index_t count = one.skipped.count[static_cast<std::size_t>(kind)];
      if (count > 0) kinds[std::string(name_of(static_cast<CsvFaultKind>(kind)))] = count;
    }
    for (const CsvFault& fault : one.skipped.first) {
      first.push_back({{"line", fault.line},
                       {"byte", fault.byte},
                       {"column", fault.column},
                       {"kind", name_of(fault.kind)},
                       {"what", fault.what}});
    }
    if (one.skipped.total() > 0)
      list.push_back({{"file", one.file}, {"rows", kinds}, {"first", first}});
  }
  return list;
}

void print_places(const std::vector<SkippedRows>& files, std::ostream& text) {
  for (const SkippedRows& one : files) {
    for (const CsvFault& fault : one.skipped.first) {
      text << fmt::format("  {}, line {}, byte {}, column {}: {}\n", one.file, fault.line,
                          fault.byte, fault.column, fault.what);
    }
    const index_t more = one.skipped.total() - std::ssize(one.skipped.first);
    if (more > 0) text << fmt::format("  and {} more in {}\n", more, one.file);
  }
}

void say_skipped(const std::vector<SkippedRows>& files, std::ostream& text) {
  if (files.empty()) return;
  text << count_text(num_skipped(files)) << '\n';
  print_places(files, text);
}

void mark_skipped(const std::vector<SkippedRows>& files, Json& json) {
  if (!files.empty()) json[key] = {{"left_out", num_skipped(files)}, {"files", json_of(files)}};
}

std::string skipped_text(const Json& json) {
  return json.contains(key) ? count_text(json.at(key).at("left_out").get<index_t>()) : "";
}

}  // namespace weft
