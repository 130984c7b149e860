// How `weft data check` tells what io/row_check finds in sets of rows: for people and as JSON.
#pragma once

#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/skipped_rows.hpp"
#include "io/row_check.hpp"

namespace weft {

// The file that a row is in, and its number there.
struct RowInFile {
  std::string file;
  index_t row = 0;
};

// What a set calls its rows and classes.
struct RowNames {
  std::function<RowInFile(index_t index)> place_of;
  std::vector<std::string> class_names;
};

// class_counts, damaged_rows, equal_rows, leaks.
nlohmann::ordered_json json_of(const RowCheck& found, const std::vector<SkippedRows>& damaged,
                               const RowNames& names);

void print(const RowCheck& found, const std::vector<SkippedRows>& damaged, const RowNames& names,
           std::ostream& text);

// 5 for damaged rows, else 1 for leaks, else 0.
int exit_code(const RowCheck& found, const std::vector<SkippedRows>& damaged);

}  // namespace weft
