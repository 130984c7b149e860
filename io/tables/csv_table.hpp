// A table in CSV form over bytes that somebody else holds: where each row begins is found once, and
// every fault on the way; a row's fields are cut out when they are asked for. It knows text, rows
// and columns; no numbers, no meaning, no files (csv_file maps one).
//
// The form is RFC 4180, with any separator, LF or CRLF at the end of a row, and UTF-8. A field that
// begins with a double quote ends at the next single one, and holds anything between them, line
// ends, too; two double quotes in it stand for one. A field without quotes holds none. The last row
// needs no line end. A byte order mark at the beginning is skipped. An empty line is a row of one
// empty field.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"

namespace weft {

enum class CsvFaultKind {
  ragged_row,        // another number of fields than the table has columns
  unclosed_quote,    // a quoted field that the text ends in
  text_after_quote,  // after a closing quote something else than a separator or a line end
  quote_in_field,    // a quote in a field that does not begin with one
  bare_return,       // CR that no LF follows, outside quotes
  nul_byte,
  invalid_utf8,
};
inline constexpr int num_csv_fault_kinds = 7;
std::string_view name_of(CsvFaultKind kind);

struct CsvFault {
  CsvFaultKind kind;
  index_t line = 0;       // all three from 1: the line of the text,
  index_t byte = 0;       // the byte in that line,
  index_t column = 0;     // the field of the row
  std::string what = {};  // expected, found
};

// The rows that were left out.
struct CsvSkipped {
  static constexpr std::size_t num_places = 5;

  std::array<index_t, num_csv_fault_kinds> count{};  // of rows, by their fault
  std::vector<CsvFault> first;                       // up to num_places

  index_t total() const;
};

struct CsvFormat {
  enum class FaultyRow {
    refuse,  // Error(data) that names the first one
    skip     // left out and counted; after a wrong quote the next line is tried as a row
  };

  char separator = ',';
  bool has_header = false;  // the first row names the columns
  index_t num_columns = 0;  // 0: as many as the header has, or else the first row without a fault
  FaultyRow faulty_row = FaultyRow::refuse;
};

// One row's fields. Views into the text, or into `unquoted` where doubled quotes were in the way:
// valid as long as both.
struct CsvRow {
  std::vector<std::string_view> fields;
  std::string unquoted;

  CsvRow() = default;
  CsvRow(const CsvRow&) = delete;  // the copy's views would be of this one
  CsvRow& operator=(const CsvRow&) = delete;
};

class CsvTable {
 public:
  // Reads all of `text`, which must outlive the table; `name` is for messages. Throws Error(data)
  // on an empty text, on a faulty header (also: two columns of one name) and, unless they are to be
  // skipped, on a faulty row; Error(usage) on a separator that cannot be one.
  CsvTable(std::string_view text, std::string name, const CsvFormat& format);

  const std::string& name() const { return name_; }
  index_t num_rows() const { return static_cast<index_t>(begins_.size()); }  // without the header
  index_t num_columns() const { return num_columns_; }
  const std::vector<std::string>& column_names() const { return column_names_; }
  // The number (from 0) of a column of the header; Error(data) where there is none, with its names.
  index_t column(std::string_view name) const;
  const CsvSkipped& skipped() const { return skipped_; }

  // Row 0..num_rows()-1, num_columns() fields. Any number of threads may read.
  void read_into(index_t row, CsvRow& fields) const;
  // "bank.csv, line 7, column 3 (marital)", for what a reader of the fields finds wrong; columns
  // from 0. Counts lines from the beginning.
  std::string place_of(index_t row, index_t column) const;

 private:
  std::size_t read_header(std::size_t begin);
  void find_rows(std::size_t begin, CsvFormat::FaultyRow faulty_row);

  std::string_view text_;
  std::string name_;
  char separator_;
  index_t num_columns_;
  std::vector<std::string> column_names_;
  std::vector<std::uint64_t> begins_;
  CsvSkipped skipped_;
};

}  // namespace weft
