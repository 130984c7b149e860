// One scanner finds rows, cuts fields and names faults; see the header.
#include "io/tables/csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "io/tables/utf8.hpp"

namespace weft {

namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::size_t find_or_end(std::string_view text, char byte, std::size_t at) {
  return std::min(text.find(byte, at), text.size());
}

// The same for what is mostly near: a call of memchr costs as much as these steps.
std::size_t find_near_or_end(std::string_view text, char byte, std::size_t at) {
  const std::size_t near = std::min(at + 16, text.size());
  for (; at < near; ++at) {
    if (text[at] == byte) return at;
  }
  return find_or_end(text, byte, at);
}

index_t line_of(std::string_view text, std::size_t at) {
  return 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
}

struct Cut {
  index_t num_fields = 0;  // whole ones
  std::size_t end = 0;     // of the last field
  std::size_t next = 0;    // where the next row begins; after a wrong quote: the next line
  std::optional<CsvFaultKind> fault;
  std::size_t fault_at = 0;
};

struct Scanner {
  std::string_view text;
  char separator;

  // The row that begins at `begin`, and its fields where they are asked for.
  Cut cut(std::size_t begin, CsvRow* fields) const {
    Cut row;
    std::size_t at = begin;
    for (bool is_last = false; !is_last;) {
      const bool is_quoted = at < text.size() && text[at] == '"';
      row.fault = is_quoted ? quoted_field(begin, at, fields) : plain_field(at, fields);
      if (row.fault) {
        row.fault_at = at;
        row.next = std::min(find_or_end(text, '\n', begin) + 1, text.size());
        return row;
      }
      ++row.num_fields;
      is_last = at == text.size() || text[at] != separator;
      if (!is_last) ++at;
    }
    row.end = at;
    if (at < text.size() && text[at] == '\r') ++at;
    row.next = std::min(at + 1, text.size());
    return row;
  }

  // What a whole row may have wrong: its number of fields (0: any), then its bytes.
  void check(std::size_t begin, index_t num_columns, Cut& row) const {
    if (num_columns != 0 && row.num_fields != num_columns) {
      row.fault = CsvFaultKind::ragged_row;
      row.fault_at = begin;
      return;
    }
    const std::string_view bytes = text.substr(begin, row.end - begin);
    const std::size_t odd = first_not_plain(bytes);
    if (odd == bytes.size()) return;
    const std::size_t invalid = odd + first_invalid_utf8(bytes.substr(odd));
    const std::size_t nul = find_or_end(bytes, '\0', odd);
    if (std::min(invalid, nul) == bytes.size()) return;
    row.fault = nul < invalid ? CsvFaultKind::nul_byte : CsvFaultKind::invalid_utf8;
    row.fault_at = begin + std::min(invalid, nul);
  }

  CsvFault fault_of(std::size_t begin, index_t num_columns, const Cut& row) const;

 private:
  bool is_line_end(std::size_t at) const {
    return text[at] == '\n' || (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n');
  }

  // Both leave `at` behind the field, or at the fault.
  std::optional<CsvFaultKind> quoted_field(std::size_t row_begin, std::size_t& at,
                                           CsvRow* fields) const {
    const std::size_t open = at++;
    const std::size_t unquoted_begin = fields != nullptr ? fields->unquoted.size() : 0;
    std::size_t piece = at;  // what is not yet in `unquoted`
    for (;;) {
      at = find_near_or_end(text, '"', at);
      if (at == text.size()) {
        at = open;
        return CsvFaultKind::unclosed_quote;
      }
      if (at + 1 == text.size() || text[at + 1] != '"') break;
      if (fields != nullptr) {
        // Room for the whole row, so that the views into it stay right.
        if (fields->unquoted.empty())
          fields->unquoted.reserve(cut(row_begin, nullptr).next - row_begin);
        fields->unquoted.append(text, piece, at + 1 - piece);
      }
      at += 2;
      piece = at;
    }
    if (fields != nullptr && piece == open + 1) {
      fields->fields.push_back(text.substr(piece, at - piece));
    } else if (fields != nullptr) {
      fields->unquoted.append(text, piece, at - piece);
      fields->fields.push_back(std::string_view(fields->unquoted).substr(unquoted_begin));
    }
    ++at;
    if (at == text.size() || text[at] == separator || is_line_end(at)) return std::nullopt;
    return CsvFaultKind::text_after_quote;
  }

  std::optional<CsvFaultKind> plain_field(std::size_t& at, CsvRow* fields) const {
    const std::size_t begin = at;
    const auto is_special = [this](char c) {
      return c == separator || c == '\n' || c == '\r' || c == '"';
    };
    while (at < text.size() && !is_special(text[at])) ++at;
    if (at < text.size() && text[at] == '"') return CsvFaultKind::quote_in_field;
    if (at < text.size() && text[at] == '\r' && !is_line_end(at)) return CsvFaultKind::bare_return;
    if (fields != nullptr) fields->fields.push_back(text.substr(begin, at - begin));
    return std::nullopt;
  }
};

CsvFault Scanner::fault_of(std::size_t begin, index_t num_columns, const Cut& row) const {
  const auto byte = [&] {
    return fmt::format("byte 0x{:02x}", static_cast<std::uint8_t>(text[row.fault_at]));
  };
  CsvFault fault{.kind = *row.fault, .column = row.num_fields + 1};
  const std::size_t line_begin = text.substr(0, row.fault_at).rfind('\n') + 1;  // npos + 1 = 0
  fault.line = line_of(text, row.fault_at);
  fault.byte = static_cast<index_t>(row.fault_at - line_begin) + 1;
  switch (fault.kind) {
    case CsvFaultKind::ragged_row:
      fault.column = std::min(row.num_fields, num_columns) + 1;
      fault.what = fmt::format("expected {} fields with '{}' between them, found {}", num_columns,
                               separator, row.num_fields);
      break;
    case CsvFaultKind::unclosed_quote:
      fault.what =
          "the text ends inside the field that this quote opens: close it, or write a "
          "quote of the text twice";
      break;
    case CsvFaultKind::text_after_quote:
      fault.what = fmt::format(
          "expected '{}' or a line end after a closing quote, found {}: write "
          "a quote of the text twice",
          separator, byte());
      break;
    case CsvFaultKind::quote_in_field:
      fault.what =
          "a quote in a field that does not begin with one: put the field in quotes and "
          "write this one twice";
      break;
    case CsvFaultKind::bare_return:
      fault.what = "a carriage return without a line feed: lines end with LF or CRLF";
      break;
    case CsvFaultKind::nul_byte:
      fault.what = "a zero byte: expected text";
      break;
    case CsvFaultKind::invalid_utf8:
      fault.what = byte() + " begins no character of UTF-8: convert the file";
      break;
  }
  if (fault.kind == CsvFaultKind::nul_byte || fault.kind == CsvFaultKind::invalid_utf8) {
    // The row is whole; where it is cut off the fault's field is the last one, whole or not.
    const Cut head = Scanner{text.substr(0, row.fault_at), separator}.cut(begin, nullptr);
    fault.column = head.num_fields + (head.fault ? 1 : 0);
  }
  return fault;
}

[[noreturn]] void refuse(const std::string& name, const CsvFault& fault) {
  throw Error(ExitCode::data, fmt::format("{}, line {}, byte {}, column {}: {}", name, fault.line,
                                          fault.byte, fault.column, fault.what));
}

}  // namespace

std::string_view name_of(CsvFaultKind kind) {
  static constexpr std::array<std::string_view, num_csv_fault_kinds> names = {
      "wrong number of fields", "unclosed quote", "text after a closing quote",
      "quote inside a field",   "bare return",    "zero byte",
      "invalid UTF-8"};
  return names[static_cast<std::size_t>(kind)];
}

index_t CsvSkipped::total() const {
  return std::accumulate(count.begin(), count.end(), index_t{0});
}

CsvTable::CsvTable(std::string_view text, std::string name, const CsvFormat& format)
    : text_(text),
      name_(std::move(name)),
      separator_(format.separator),
      num_columns_(format.num_columns) {
  const auto byte = static_cast<std::uint8_t>(separator_);
  require(byte != '"' && byte != '\n' && byte != '\r' && byte != 0 && byte < 0x80, ExitCode::usage,
          fmt::format("{}: byte 0x{:02x} separates no fields: expected an ASCII character that is "
                      "no quote, line end or zero",
                      name_, byte));
  require(num_columns_ >= 0, ExitCode::usage,
          fmt::format("{}: asked for {} columns: expected at least 0", name_, num_columns_));
  const std::size_t begin = text_.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  require(begin < text_.size(), ExitCode::data,
          fmt::format("{} is empty: expected rows of fields; copy or make the file again", name_));
  find_rows(format.has_header ? read_header(begin) : begin, format.faulty_row);
}

// A table whose header is wrong is another table, so it is refused in any case.
std::size_t CsvTable::read_header(std::size_t begin) {
  const Scanner scanner{text_, separator_};
  Cut header = scanner.cut(begin, nullptr);
  if (!header.fault) scanner.check(begin, num_columns_, header);
  if (header.fault) refuse(name_, scanner.fault_of(begin, num_columns_, header));
  CsvRow row;
  scanner.cut(begin, &row);
  std::set<std::string_view> seen;
  for (const std::string_view field : row.fields) {
    column_names_.emplace_back(field);
    require(seen.insert(field).second, ExitCode::data,
            fmt::format("{}, line 1, column {}: two columns are called \"{}\"; rename one", name_,
                        column_names_.size(), field));
  }
  num_columns_ = std::ssize(column_names_);
  return header.next;
}

void CsvTable::find_rows(std::size_t begin, CsvFormat::FaultyRow faulty_row) {
  const Scanner scanner{text_, separator_};
  for (std::size_t at = begin; at < text_.size();) {
    Cut row = scanner.cut(at, nullptr);
    if (!row.fault) scanner.check(at, num_columns_, row);
    if (!row.fault) {
      if (num_columns_ == 0) num_columns_ = row.num_fields;
      begins_.push_back(at);
    } else if (faulty_row == CsvFormat::FaultyRow::refuse) {
      refuse(name_, scanner.fault_of(at, num_columns_, row));
    } else {
      ++skipped_.count[static_cast<std::size_t>(*row.fault)];
      if (skipped_.first.size() < CsvSkipped::num_places)
        skipped_.first.push_back(scanner.fault_of(at, num_columns_, row));
    }
    at = row.next;
  }
}

index_t CsvTable::column(std::string_view name) const {
  const auto found = std::find(column_names_.begin(), column_names_.end(), name);
  if (found != column_names_.end()) return found - column_names_.begin();
  constexpr std::size_t most = 40;
  const auto end =
      column_names_.begin() + static_cast<std::ptrdiff_t>(std::min(most, column_names_.size()));
  throw Error(ExitCode::data,
              column_names_.empty()
                  ? fmt::format("{} has no header: a column cannot be asked for by its name \"{}\"",
                                name_, name)
                  : fmt::format("{} has no column \"{}\"; it has {} columns: {}{}", name_, name,
                                column_names_.size(), fmt::join(column_names_.begin(), end, ", "),
                                column_names_.size() > most ? ", .." : ""));
}

void CsvTable::read_into(index_t row, CsvRow& fields) const {
  assert(0 <= row && row < num_rows());
  fields.fields.clear();
  fields.unquoted.clear();
  Scanner{text_, separator_}.cut(begins_[static_cast<std::size_t>(row)], &fields);
}

std::string CsvTable::place_of(index_t row, index_t column) const {
  assert(0 <= row && row < num_rows());
  const auto c = static_cast<std::size_t>(column);
  return fmt::format("{}, line {}, column {}{}", name_,
                     line_of(text_, begins_[static_cast<std::size_t>(row)]), column + 1,
                     c < column_names_.size() ? " (" + column_names_[c] + ")" : "");
}

}  // namespace weft
