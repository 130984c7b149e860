// Tables in CSV form: the first byte chooses separator, header and what is done with faulty rows,
// the next one the form in which what was taken is written again.
#include <array>

#include "io/tables/csv_table.hpp"
#include "tests/fuzz/choices.hpp"
#include "tests/fuzz/readers.hpp"
#include "tests/io/tables/write_csv.hpp"

namespace weft::test {

namespace {

CsvRows rows_of(const CsvTable& table) {
  CsvRows rows;
  CsvRow row;
  for (index_t r = 0; r < table.num_rows(); ++r) {
    table.read_into(r, row);
    rows.emplace_back(row.fields.begin(), row.fields.end());
    expect(std::ssize(rows.back()) == table.num_columns(), "a row has another number of fields");
  }
  return rows;
}

// RFC 4180 a byte at a time, for texts that are known to have no fault.
CsvRows rows_by_bytes(std::string_view text, char separator) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  CsvRows rows;
  bool is_quoted = false, is_row_open = false;
  std::string field;
  std::vector<std::string> row;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool is_next_quote = at + 1 < text.size() && text[at + 1] == '"';
    is_row_open = true;
    if (c == '"' && is_quoted && is_next_quote) {
      field += '"';
      ++at;
    } else if (c == '"') {
      is_quoted = !is_quoted;
    } else if (is_quoted) {
      field += c;
    } else if (c == separator || c == '\n') {
      row.push_back(field);
      field.clear();
      if (c == separator) continue;
      rows.push_back(row);
      row.clear();
      is_row_open = false;
    } else if (c != '\r') {
      field += c;
    }
  }
  if (!is_row_open) return rows;
  row.push_back(field);
  rows.push_back(row);
  return rows;
}

void take_csv(std::string_view bytes) {
  Choices choices(bytes.substr(0, 2));
  const std::uint8_t form = choices.byte(), style = choices.byte();
  bytes.remove_prefix(std::min<std::size_t>(2, bytes.size()));
  CsvFormat format;
  format.separator = std::array{',', ';', '\t', '|'}[form % 4];
  format.has_header = (form & 4) != 0;
  CsvFormat skip = format;
  skip.faulty_row = CsvFormat::FaultyRow::skip;

  const auto table_of = [&](const CsvFormat& how) { return CsvTable(bytes, "t.csv", how); };
  const bool is_sound = is_taken(ExitCode::data, [&] { table_of(format); });
  if (!is_taken(ExitCode::data, [&] { table_of(skip); })) {
    expect(!is_sound, "refused only where faulty rows are skipped");
    return;
  }
  const CsvTable table = table_of(skip);
  expect(is_sound == (table.skipped().total() == 0), "rows are skipped without a fault");
  expect(table.skipped().first.size() ==
             std::min<std::size_t>(CsvSkipped::num_places,
                                   static_cast<std::size_t>(table.skipped().total())),
         "a skipped row without a place");
  const CsvRows rows = rows_of(table);
  if (is_sound) {
    CsvRows all = rows_by_bytes(bytes, format.separator);
    if (format.has_header) all.erase(all.begin());
    expect(rows == all, "other fields than a plain reading has");
  }
  if (rows.empty()) return;
  std::uint32_t state = style;
  const auto choose = [&](std::size_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % n;
  };
  const std::string written = write_csv(rows, format.separator, choose);
  const CsvTable again(written, "again.csv", {.separator = format.separator});
  expect(rows_of(again) == rows, "written again, a table changes:\n" + written);
}

std::vector<std::string> csv_seeds() {
  const std::string two(2, '\0'), header = std::string("\5\3"), skip("\0\7", 2);
  return {two + "1,\"a \"\"b\"\"\",\"c,\nd\"\r\n2,,\"\"\r\n3,x,y",
          header + "\xef\xbb\xbf\"age\";\"job\"\n56;\"admin.\"\n57;\"caf\xc3\xa9 \xe2\x82\xac\"\n",
          skip + "a,b\nc,\"d\ne,f\ng\rh,i\nj,k\"\nl\nm,\xff\nn,o\n", two + "\n\"\"\n\n"};
}

}  // namespace

FuzzedReader csv_reader() { return {"csv", take_csv, csv_seeds}; }

}  // namespace weft::test
