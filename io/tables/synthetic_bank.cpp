// Drawing clients and what they answer, in integers; see the header.
#include "io/tables/synthetic_bank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/error.hpp"
#include "io/synthetic_set.hpp"

namespace weft {

namespace {

constexpr index_t rows_of_month = 500;
constexpr int points_of_yes = 110;
constexpr int first_month = 4;      // May
constexpr index_t first_file = 16;  // of Draws

struct Economy {
  const char* employment;  // emp.var.rate
  const char* prices;      // cons.price.idx
  const char* confidence;  // cons.conf.idx
  int euribor;             // in thousandths
  const char* employed;    // nr.employed
};
constexpr std::array<Economy, 5> economies = {{{"1.1", "93.9", "-36.5", 4850, "5190"},
                                               {"1.4", "94.4", "-41.8", 4960, "5228"},
                                               {"-0.2", "93.2", "-42", 4100, "5176"},
                                               {"-1.7", "92.9", "-46.2", 1300, "5099.5"},
                                               {"-3", "92.4", "-30.1", 700, "5010"}}};

// The fields of a row by the names of their columns.
using Fields = std::map<std::string_view, std::string>;

int age_of(const std::string& job, Draws& draws) {
  if (job == "student") return draws.between(18, 28);
  if (job == "retired") return draws.between(55, 90);
  return draws.between(22, 60);
}

// The client was contacted before: by whom it is known how it ended.
void add_history(BankSchema schema, Draws& draws, Fields& fields) {
  const bool is_full = schema == BankSchema::full;
  if (!draws.happens(18)) {
    fields["pdays"] = is_full ? "-1" : "999";
    fields["previous"] = "0";
    fields["poutcome"] = is_full ? "unknown" : "nonexistent";
    return;
  }
  fields["pdays"] = std::to_string(is_full ? draws.between(60, 380) : draws.between(1, 27));
  fields["previous"] = std::to_string(draws.between(1, 5));
  const bool is_success = draws.happens(40);
  const bool is_other = is_full && draws.happens(25);
  fields["poutcome"] = is_success ? "success" : is_other ? "other" : "failure";
}

// What speaks for a yes; noise is added to it.
int points_of(const Fields& fields) {
  const auto is = [&](std::string_view column, std::string_view value) {
    const auto field = fields.find(column);
    return field != fields.end() && field->second == value;
  };
  int points = 0;
  if (is("poutcome", "success")) points += 40;
  if (is("job", "student") || is("job", "retired")) points += 18;
  if (is("contact", "cellular")) points += 10;
  if (is("housing", "yes")) points -= 6;
  if (is("loan", "yes")) points -= 6;
  points -= 2 * std::stoi(fields.at("campaign"));
  if (fields.contains("balance") && std::stoi(fields.at("balance")) > 3000) points += 15;
  if (fields.contains("euribor3m") && fields.at("euribor3m") < "2") points += 15;
  return points;
}

std::string quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

// Only the newer official file has CRLF.
const char* line_end(BankSchema schema) { return schema == BankSchema::full ? "\n" : "\r\n"; }

std::string header_of(BankSchema schema) {
  std::string line;
  for (const BankColumn& column : bank_columns(schema))
    line += (line.empty() ? "" : ";") + quoted(column.name);
  return line + line_end(schema);
}

}  // namespace

std::string synthetic_bank_row(BankSchema schema, std::uint64_t seed, index_t row) {
  Draws draws(seed, first_file + (schema == BankSchema::full ? 0 : 1), row);
  const auto columns = bank_columns(schema);
  const auto month = static_cast<std::size_t>(row / rows_of_month);
  const Economy& economy = economies[month % economies.size()];
  Fields fields;
  for (const BankColumn& column : columns) {
    if (column.kind == BankColumnKind::category)
      fields[column.name] = std::string(draws.one_of(column.categories));
    if (column.name == "month")
      fields["month"] = std::string(column.categories[(first_month + month) % 12]);
  }
  fields["age"] = std::to_string(age_of(fields["job"], draws));
  fields["campaign"] = std::to_string(1 + draws.between(0, 9) * draws.between(0, 9) / 20);
  add_history(schema, draws, fields);
  if (schema == BankSchema::full) {
    fields["balance"] = std::to_string(draws.between(-500, 4500));
    fields["day"] = std::to_string(draws.between(1, 28));
  } else {
    const int euribor = economy.euribor + draws.between(-25, 25);
    fields["emp.var.rate"] = economy.employment;
    fields["cons.price.idx"] = economy.prices;
    fields["cons.conf.idx"] = economy.confidence;
    fields["euribor3m"] = fmt::format("{}.{:03}", euribor / 1000, euribor % 1000);
    fields["nr.employed"] = economy.employed;
  }
  int points = points_of(fields);
  for (int i = 0; i < 4; ++i) points += draws.between(0, 36);
  const bool is_yes = points >= points_of_yes;
  fields["duration"] = std::to_string(is_yes ? draws.between(150, 1200) : draws.between(5, 450));
  fields["y"] = is_yes ? "yes" : "no";

  std::string line;
  for (const BankColumn& column : columns) {
    const bool is_text =
        column.kind == BankColumnKind::category || column.kind == BankColumnKind::label;
    const std::string& field = fields.at(column.name);
    if (!line.empty()) line += ';';
    line += is_text ? quoted(field) : field;
  }
  return line + line_end(schema);
}

void make_synthetic_bank(const std::string& folder, const SyntheticBankOptions& options) {
  const std::string name(bank_file_name(options.schema));
  require(options.rows >= 1, ExitCode::usage,
          fmt::format("rows = {}: expected at least 1", options.rows));
  check_new_set(folder, {name}, options.seed);
  write_new_set(folder, {{name, [&](index_t row, std::string& bytes) {
                            if (row == 0) bytes += header_of(options.schema);
                            if (row == options.rows) return false;
                            bytes += synthetic_bank_row(options.schema, options.seed, row);
                            return true;
                          }}});
}

}  // namespace weft
