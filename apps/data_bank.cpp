// `weft data` for Bank Marketing. Where a folder holds both tables, each is described and checked;
// a plan means one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>

#include "apps/data_set_commands.hpp"
#include "apps/dataset_split.hpp"
#include "apps/leak_mark.hpp"
#include "apps/row_check_output.hpp"
#include "apps/slice_balance_output.hpp"
#include "core/error.hpp"
#include "io/tables/bank_check.hpp"
#include "io/tables/bank_samples.hpp"
#include "io/tables/row_split.hpp"
#include "io/tables/synthetic_bank.hpp"

namespace weft {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::vector<std::string> label_names = {"no", "yes"};

std::vector<std::string> tables_of(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const BankSchema schema : {BankSchema::full, BankSchema::additional}) {
    const fs::path file = folder / bank_file_name(schema);
    if (fs::exists(file, ignored)) found.push_back(file.string());
  }
  return found;
}

bool is_in(const fs::path& folder) { return !tables_of(folder).empty(); }

// A file, or all tables of a folder or of its subfolder; where there are none, the path itself, for
// the reader to say so.
std::vector<std::string> tables_at(const std::string& path) {
  for (const fs::path& folder : {fs::path(path), fs::path(path) / "bank"}) {
    const std::vector<std::string> found = tables_of(folder);
    if (!found.empty()) return found;
  }
  return {path};
}

std::string file_name(const Bank& data) { return fs::path(data.path()).filename().string(); }

// What a column holds.
struct ColumnFigures {
  double least = 0, greatest = 0, mean = 0;
  std::vector<index_t> counts;  // of the documented categories; the last one: of all others
};

ColumnFigures figures_of(const Bank& data, index_t column) {
  const BankColumn& kind = bank_columns(data.schema())[static_cast<std::size_t>(column)];
  ColumnFigures figures;
  if (kind.kind == BankColumnKind::label) {
    figures.counts.assign(2, 0);
    for (const int label : data.labels()) ++figures.counts[static_cast<std::size_t>(label)];
    return figures;
  }
  if (kind.kind == BankColumnKind::category) {
    figures.counts.assign(kind.categories.size() + 1, 0);
    for (index_t r = 0; r < data.num_rows(); ++r)
      ++figures.counts[static_cast<std::size_t>(data.category(r, column))];
    return figures;
  }
  figures.least = figures.greatest = data.number(0, column);
  for (index_t r = 0; r < data.num_rows(); ++r) {
    const double value = data.number(r, column);
    figures.least = std::min(figures.least, value);
    figures.greatest = std::max(figures.greatest, value);
    figures.mean += value;
  }
  figures.mean /= static_cast<double>(data.num_rows());
  return figures;
}

// Names and counts of a column's categories: those of "other" where there are some.
std::vector<std::pair<std::string, index_t>> categories_of(const BankColumn& column,
                                                           const ColumnFigures& figures) {
  std::vector<std::pair<std::string, index_t>> list;
  if (column.kind == BankColumnKind::label) {
    for (std::size_t i = 0; i < label_names.size(); ++i)
      list.emplace_back(label_names[i], figures.counts[i]);
    return list;
  }
  for (std::size_t i = 0; i < column.categories.size(); ++i)
    list.emplace_back(column.categories[i], figures.counts[i]);
  if (figures.counts.back() > 0) list.emplace_back("(not documented)", figures.counts.back());
  return list;
}

Json json_of(const Bank& data) {
  Json columns = Json::object();
  const auto kinds = bank_columns(data.schema());
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    const ColumnFigures figures = figures_of(data, static_cast<index_t>(c));
    Json& column = columns[std::string(kinds[c].name)];
    if (figures.counts.empty()) {
      column = {{"min", figures.least}, {"max", figures.greatest}, {"mean", figures.mean}};
    } else {
      for (const auto& [name, count] : categories_of(kinds[c], figures))
        column["counts"][name] = count;
    }
    if (kinds[c].is_leak) column["known_after_the_call"] = true;
  }
  return {{"file", data.path()},
          {"schema", bank_file_name(data.schema())},
          {"rows", data.num_rows()},
          {"fingerprint", data.fingerprint()},
          {"columns", columns}};
}

void print(const Bank& data, std::ostream& text) {
  const auto yes = std::count(data.labels().begin(), data.labels().end(), 1);
  text << fmt::format("Bank Marketing in {}: {} rows, {} of them yes ({:.2f} %)\n", data.path(),
                      data.num_rows(), yes,
                      100.0 * static_cast<double>(yes) / static_cast<double>(data.num_rows()));
  const auto kinds = bank_columns(data.schema());
  for (std::size_t c = 0; c < kinds.size(); ++c) {
    const ColumnFigures figures = figures_of(data, static_cast<index_t>(c));
    text << fmt::format("{:18}", kinds[c].name);
    if (figures.counts.empty()) {
      text << fmt::format("{:g} to {:g}, mean {:g}", figures.least, figures.greatest, figures.mean);
    } else {
      std::vector<std::string> list;
      for (const auto& [name, count] : categories_of(kinds[c], figures))
        list.push_back(fmt::format("{} {}", name, count));
      text << fmt::format("{}", fmt::join(list, ", "));
    }
    text << (kinds[c].is_leak ? "; known after the call only: no feature\n" : "\n");
  }
  text << "fingerprint " << data.fingerprint() << '\n';
}

int make(const DataMakeOptions& options, std::ostream& text, std::ostream& out) {
  SyntheticBankOptions set;
  set.rows = options.rows.value_or(set.rows);
  set.seed = options.seed;
  const std::string table = options.table.value_or("bank-additional-full") + ".csv";
  if (table == bank_file_name(BankSchema::full)) set.schema = BankSchema::full;
  require(table == bank_file_name(set.schema), ExitCode::usage,
          fmt::format("--table {}: expected bank-full or bank-additional-full",
                      options.table.value_or("")));
  make_synthetic_bank(options.folder, set);
  text << fmt::format("wrote a synthetic {} to {}: {} rows, seed {}\n", table, options.folder,
                      set.rows, set.seed);
  if (options.json) {
    const Json record = {{"dataset", "bank"}, {"folder", options.folder}, {"file", table},
                         {"rows", set.rows},  {"seed", set.seed},         {"synthetic", true}};
    out << record.dump() << '\n';
  }
  return static_cast<int>(ExitCode::done);
}

int info(const std::string& path, bool json, std::ostream& text, std::ostream& out) {
  Json tables = Json::array();
  for (const std::string& file : tables_at(path)) {
    const Bank data(file);
    if (json)
      tables.push_back(json_of(data));
    else
      print(data, text);
  }
  if (json) out << Json{{"dataset", "bank"}, {"folder", path}, {"tables", tables}}.dump() << '\n';
  return static_cast<int>(ExitCode::done);
}

// Without a plan by time: the first eight tenths to train, one tenth to validate, the rest to test.
Split split_without_plan(const Bank& data) {
  const index_t rows = data.num_rows(), tenth = rows / 10;
  return split_by_time(rows, {.train = rows - 2 * tenth, .validation = tenth, .test = tenth});
}

// Quarters of each part in time, where parts have as many rows.
std::vector<std::string> usual_slices(index_t num_rows, const Split& split) {
  constexpr index_t quarters = 4;
  const index_t unused = num_rows - std::ssize(split.train) - std::ssize(split.validation) -
                         std::ssize(split.test);
  for (const index_t count : {std::ssize(split.train), std::ssize(split.validation),
                              std::ssize(split.test), unused}) {
    if (0 < count && count < quarters) return {};
  }
  return {"time"};
}

int check_tables(const std::string& path, const DataCheckOptions& options, std::ostream& text,
                 std::ostream& out) {
  const std::optional<TaskPlan>& task = options.task;
  int code = static_cast<int>(ExitCode::done);
  Json tables = Json::array();
  const bool is_file = !fs::is_directory(path);
  const std::vector<std::string> files =
      task && !is_file ? std::vector{bank_table_in(path, task->table)} : tables_at(path);
  for (const std::string& file : files) {
    Bank data(file, CsvFormat::FaultyRow::skip);
    const Split split = task ? split_of(*task, data) : split_without_plan(data);
    const RowCheck found = check(data, split);
    const std::vector<SkippedRows> damaged = skipped_of(data);
    const RowNames names = {[name = file_name(data)](index_t index) {
                              return RowInFile{name, index};
                            },
                            label_names};
    code = std::max(code, exit_code(found, damaged));
    const BankSamples samples(std::move(data), split.train, task && task->allow_leak);
    const std::vector<SliceBalance> balance = balance_of_slices(
        samples, split,
        options.slices.empty() ? usual_slices(samples.num_samples(), split) : options.slices);
    const std::string kind = task ? task->split_kind : "time";
    if (options.json) {
      Json table = {
          {"file", file}, {"split_kind", kind}, {"split", Json::parse(split_record(split))}};
      table.update(json_of(found, damaged, names));
      table["slices"] = json_of(balance);
      if (task) mark_leak(*task, table);
      tables.push_back(std::move(table));
    } else {
      text << fmt::format(
          "Bank Marketing in {}, split {}\n", file,
          kind == "time"    ? "by time"
          : kind == "group" ? fmt::format("by group of {}, by seed {}", task->split_by, split.seed)
                            : fmt::format("by seed {}", split.seed));
      if (task) say_leak(*task, text);
      print(found, damaged, names, text);
      print(balance, label_names, text);
    }
  }
  if (options.json)
    out << Json{{"dataset", "bank"}, {"folder", path}, {"tables", tables}}.dump() << '\n';
  return code;
}

}  // namespace

const DataSetCommands bank_commands = {.name = "bank",
                                       .files = "bank-full.csv or bank-additional-full.csv",
                                       .is_in = is_in,
                                       .make = make,
                                       .info = info,
                                       .check = check_tables};

}  // namespace weft
