// Writes CSV without weft's code, in each of the forms that are legal: by `choose(n)`, a number
// below n for each decision, so a test may draw them and a fuzzer may choose them.
#pragma once

#include <string>
#include <vector>

namespace weft::test {

using CsvRows = std::vector<std::vector<std::string>>;

template <class Choose>
std::string write_csv(const CsvRows& rows, char separator, Choose&& choose) {
  const std::string special = std::string("\"\r\n") + separator;
  const std::string line_end = choose(2) == 0 ? "\n" : "\r\n";
  std::string text = choose(3) == 0 ? "\xef\xbb\xbf" : "";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string row;
    for (const std::string& field : rows[r]) {
      if (!row.empty() || &field != &rows[r].front()) row += separator;
      // A mark that the text begins with would be taken for the file's.
      const bool is_mark = text.empty() && row.empty() && field.starts_with("\xef\xbb\xbf");
      if (!is_mark && field.find_first_of(special) == std::string::npos && choose(2) == 0) {
        row += field;
        continue;
      }
      row += '"';
      for (const char c : field) row += c == '"' ? std::string("\"\"") : std::string(1, c);
      row += '"';
    }
    text += row;
    // An empty row needs its line end to be one.
    if (r + 1 < rows.size() || row.empty() || choose(2) == 0) text += line_end;
  }
  return text;
}

}  // namespace weft::test
