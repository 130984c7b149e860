// Opening, recognizing and reading the two files; see the header.
#include "io/tables/bank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <unordered_map>

#include "core/error.hpp"
#include "core/hash.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

constexpr const char* how_to_get =
    "name one of the official files bank-full.csv and bank-additional-full.csv (UCI, Bank "
    "Marketing), or its folder";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string find_file(const std::string& given) {
  require(is_there(given), ExitCode::data,
          fmt::format("{} does not exist: {}", given.empty() ? "\"\"" : given, how_to_get));
  if (!fs::is_directory(given)) return given;
  for (const fs::path& folder : {fs::path(given), fs::path(given) / "bank"}) {
    std::vector<std::string> found;
    for (const BankSchema schema : {BankSchema::full, BankSchema::additional}) {
      const fs::path file = folder / bank_file_name(schema);
      if (is_there(file)) found.push_back(file.string());
    }
    require(found.size() < 2, ExitCode::data,
            fmt::format("{} holds both tables: name the file that is meant, {}", folder.string(),
                        fmt::join(found, " or ")));
    if (!found.empty()) return found.front();
  }
  throw Error(ExitCode::data, fmt::format("no Bank Marketing in {}: {}", given, how_to_get));
}

struct Difference {
  std::vector<std::string> missing, extra;
  std::size_t size() const { return missing.size() + extra.size(); }
};

Difference difference(const std::vector<std::string>& header, BankSchema schema) {
  const auto columns = bank_columns(schema);
  const auto has_name = [](std::string_view name) {
    return [name](const BankColumn& column) { return column.name == name; };
  };
  Difference found;
  for (const BankColumn& column : columns) {
    if (std::find(header.begin(), header.end(), column.name) == header.end())
      found.missing.emplace_back(column.name);
  }
  for (const std::string& name : header) {
    if (std::none_of(columns.begin(), columns.end(), has_name(name))) found.extra.push_back(name);
  }
  return found;
}

// The schema whose columns these are; where they are nobody's, what is wrong with the nearer one.
BankSchema recognize(const CsvTable& table) {
  const Difference full = difference(table.column_names(), BankSchema::full);
  const Difference additional = difference(table.column_names(), BankSchema::additional);
  const bool is_full = full.size() <= additional.size();
  const Difference& nearer = is_full ? full : additional;
  const BankSchema schema = is_full ? BankSchema::full : BankSchema::additional;
  const auto list = [](const std::vector<std::string>& names) {
    const auto end = names.begin() + std::min<std::ptrdiff_t>(std::ssize(names), 30);
    return names.empty() ? std::string("none")
                         : fmt::format("{}", fmt::join(names.begin(), end, ", "));
  };
  require(nearer.size() == 0, ExitCode::data,
          fmt::format("{}: its header is not that of {} ({} columns, separated by ';'); missing "
                      "columns: {}; columns too many: {}",
                      table.name(), bank_file_name(schema), bank_columns(schema).size(),
                      list(nearer.missing), list(nearer.extra)));
  return schema;
}

// All of `text` as a finite decimal number.
bool parse_number(std::string_view text, double& value) {
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  return fault == std::errc() && end == text.data() + text.size() && std::isfinite(value);
}

}  // namespace

Bank::Bank(const std::string& path, CsvFormat::FaultyRow faulty_row)
    : file_(find_file(path), {.separator = ';', .has_header = true, .faulty_row = faulty_row}),
      schema_(recognize(file_.table())) {
  require(num_rows() > 0, ExitCode::data,
          fmt::format("{} has a header and no sound row: expected rows below it", this->path()));
  read_columns();
}

void Bank::read_columns() {
  const auto columns = bank_columns(schema_);
  const CsvTable& table = file_.table();
  std::vector<index_t> field_of;
  for (const BankColumn& column : columns) field_of.push_back(table.column(column.name));
  numbers_.resize(columns.size());
  categories_.resize(columns.size());
  CsvRow row;
  for (index_t r = 0; r < num_rows(); ++r) {
    table.read_into(r, row);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const BankColumn& column = columns[c];
      const std::string_view text = row.fields[at(field_of[c])];
      const auto refuse = [&](std::string_view expected) {
        throw Error(ExitCode::data, fmt::format("{}: expected {}, found \"{}\"",
                                                table.place_of(r, field_of[c]), expected, text));
      };
      if (column.kind == BankColumnKind::label) {
        if (text != "yes" && text != "no") refuse("yes or no");
        labels_.push_back(text == "yes" ? 1 : 0);
      } else if (column.kind == BankColumnKind::category) {
        const auto found = std::find(column.categories.begin(), column.categories.end(), text);
        categories_[c].push_back(static_cast<std::uint8_t>(found - column.categories.begin()));
      } else {
        double value = 0;
        if (!parse_number(text, value)) refuse("a number");
        numbers_[c].push_back(value);
      }
    }
  }
}

std::vector<index_t> Bank::groups(std::string_view column) const {
  const CsvTable& table = file_.table();
  const auto& names = table.column_names();
  const auto found = std::find(names.begin(), names.end(), column);
  require(found != names.end(), ExitCode::usage,
          fmt::format("split by group \"{}\": {} has no such column, and none that tells one "
                      "customer from another, so a split by customer cannot be made; it has {}; "
                      "split by time or at random instead",
                      column, path(), fmt::join(names, ", ")));
  std::unordered_map<std::string, index_t> number_of;
  std::vector<index_t> groups;
  CsvRow row;
  for (index_t r = 0; r < num_rows(); ++r) {
    table.read_into(r, row);
    const std::string text(row.fields[static_cast<std::size_t>(found - names.begin())]);
    groups.push_back(number_of.try_emplace(text, std::ssize(number_of)).first->second);
  }
  return groups;
}

std::string Bank::fingerprint() const {
  return hash128(file_.text().data(), file_.text().size()).text();
}

}  // namespace weft
