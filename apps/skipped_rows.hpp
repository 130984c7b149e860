// Rows of tables and texts that break the CSV form and so are no samples: how that is told. `weft
// data check` always leaves them out and lists them; a run does so where its plan says
// task.faulty_rows = "skip", and then tells of it at its start and in its records, also where there
// were none.
#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "io/tables/csv_table.hpp"

namespace weft {

struct SkippedRows {
  std::string file;  // its name without its folder
  CsvSkipped skipped;
};

index_t num_skipped(const std::vector<SkippedRows>& files);
// Of the files that have some: [{"file", "rows": {kind: number}, "first": [{"line", "byte",
// "column", "kind", "what"}]}].
nlohmann::ordered_json json_of(const std::vector<SkippedRows>& files);
// "  FILE, line L, byte B, column C: what", a line for each of the first ones, and how many more.
void print_places(const std::vector<SkippedRows>& files, std::ostream& text);

// The same of a run, whose list is empty where its plan leaves out none. How many, and where:
void say_skipped(const std::vector<SkippedRows>& files, std::ostream& text);
// {"left_out", "files"} under "faulty_rows".
void mark_skipped(const std::vector<SkippedRows>& files, nlohmann::ordered_json& json);
// One line out of an object that mark_skipped() marked; empty where there is no mark.
std::string skipped_text(const nlohmann::ordered_json& json);

}  // namespace weft
