// Fitting and encoding; see the header.
#include "io/tables/bank_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace weft {

namespace {

void check_rows(const Bank& data, std::span<const index_t> rows) {
  require(!rows.empty(), ExitCode::usage,
          "an encoder cannot be fitted on no rows: expected at least one training row");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] >= data.num_rows()) [[unlikely]] {
      throw Error(ExitCode::usage, fmt::format("training row {}: {} has rows 0..{}", rows[i],
                                               data.path(), data.num_rows() - 1));
    }
    if (i > 0 && rows[i - 1] >= rows[i]) [[unlikely]] {
      throw Error(ExitCode::usage,
                  fmt::format("training row {} behind row {}: an encoder is fitted on increasing "
                              "rows, each once",
                              rows[i], rows[i - 1]));
    }
  }
}

bool is_number(const BankColumn& column) {
  return column.kind == BankColumnKind::number || column.kind == BankColumnKind::days_since_contact;
}

}  // namespace

BankEncoder::BankEncoder(const Bank& data, std::span<const index_t> rows, bool allow_leak)
    : schema_(data.schema()), allow_leak_(allow_leak), num_fitted_(std::ssize(rows)) {
  check_rows(data, rows);
  const auto columns = bank_columns(schema_);
  columns_.resize(columns.size());
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const auto column = static_cast<index_t>(c);
    if (!is_used(columns[c])) continue;
    if (is_number(columns[c])) fit_number(data, rows, column);
    if (columns[c].kind != BankColumnKind::category) continue;
    // One more, for what is not documented; it stays "not trained".
    std::vector<char>& is_trained = columns_[c].is_trained;
    is_trained.assign(columns[c].categories.size() + 1, 0);
    for (const index_t row : rows)
      is_trained[static_cast<std::size_t>(data.category(row, column))] = 1;
    is_trained.back() = 0;
  }
  name_features();
}

bool BankEncoder::is_used(const BankColumn& column) const {
  return column.kind != BankColumnKind::label && (!column.is_leak || allow_leak_);
}

void BankEncoder::fit_number(const Bank& data, std::span<const index_t> rows, index_t column) {
  const auto c = static_cast<std::size_t>(column);
  std::vector<double> values;
  for (const index_t row : rows) {
    const double value = data.number(row, column);
    const bool counts =
        bank_columns(schema_)[c].kind == BankColumnKind::number || value != not_contacted(schema_);
    if (counts) values.push_back(value);
  }
  if (values.empty()) return;
  const auto n = static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += value;
  columns_[c].mean = sum / n;
  // By comparison: the mean of equal values need not be that value.
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  if (*least == *greatest) return;
  double squares = 0;
  for (const double value : values)
    squares += (value - columns_[c].mean) * (value - columns_[c].mean);
  columns_[c].deviation = std::sqrt(squares / n);
}

float BankEncoder::standardized(std::size_t column, double value) const {
  const auto& [mean, deviation, ignored] = columns_[column];
  return deviation == 0 ? 0.0f : static_cast<float>((value - mean) / deviation);
}

void BankEncoder::encode_into(const Bank& data, index_t row, std::span<float> x) const {
  assert(data.schema() == schema_ && std::ssize(x) == num_features());
  const auto columns = bank_columns(schema_);
  std::size_t at = 0;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!is_used(columns[c])) continue;
    const auto column = static_cast<index_t>(c);
    if (columns[c].kind == BankColumnKind::category) {
      const auto last = columns[c].categories.size();
      const auto category = static_cast<std::size_t>(data.category(row, column));
      std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(at), last + 1, 0.0f);
      x[at + (columns_[c].is_trained[category] != 0 ? category : last)] = 1.0f;
    } else if (columns[c].kind == BankColumnKind::days_since_contact) {
      const double days = data.number(row, column);
      const bool is_contacted = days != not_contacted(schema_);
      x[at] = is_contacted ? 1.0f : 0.0f;
      x[at + 1] = is_contacted ? standardized(c, days) : 0.0f;
    } else {
      x[at] = standardized(c, data.number(row, column));
    }
    at += static_cast<std::size_t>(columns[c].num_features());
  }
}

std::vector<index_t> BankEncoder::count_other(const Bank& data,
                                              std::span<const index_t> rows) const {
  assert(data.schema() == schema_);
  std::vector<index_t> count(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].is_trained.empty()) continue;
    for (const index_t row : rows) {
      const auto category = static_cast<std::size_t>(data.category(row, static_cast<index_t>(c)));
      count[c] += columns_[c].is_trained[category] == 0 ? 1 : 0;
    }
  }
  return count;
}

void BankEncoder::name_features() {
  for (const BankColumn& column : bank_columns(schema_)) {
    if (!is_used(column)) continue;
    const std::string name(column.name);
    if (column.kind == BankColumnKind::days_since_contact)
      feature_names_.push_back(name + ":contacted");
    if (column.kind != BankColumnKind::category) {
      feature_names_.push_back(name);
      continue;
    }
    for (const std::string_view category : column.categories)
      feature_names_.push_back(name + "=" + std::string(category));
    feature_names_.push_back(name + "=(other)");
  }
}

std::string BankEncoder::record() const {
  nlohmann::ordered_json record = {{"schema", bank_file_name(schema_)},
                                   {"fitted_on_rows", num_fitted_},
                                   {"features", num_features()},
                                   {"allow_leak", allow_leak_}};
  const auto columns = bank_columns(schema_);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!is_used(columns[c])) continue;
    nlohmann::ordered_json& entry = record["columns"][std::string(columns[c].name)];
    if (columns[c].kind != BankColumnKind::category) {
      entry = {{"mean", columns_[c].mean}, {"deviation", columns_[c].deviation}};
      continue;
    }
    for (std::size_t i = 0; i < columns[c].categories.size(); ++i) {
      if (columns_[c].is_trained[i] == 0)
        entry["in_no_training_row"].push_back(columns[c].categories[i]);
    }
    if (entry.is_null()) entry["in_no_training_row"] = nlohmann::ordered_json::array();
  }
  return record.dump();
}

}  // namespace weft
