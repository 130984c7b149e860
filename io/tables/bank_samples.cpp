#include "io/tables/bank_samples.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "io/quartile_groups.hpp"

namespace weft {

namespace {

SampleGroups by_category(const Bank& bank, const BankColumn& kind, index_t column) {
  SampleGroups groups;
  for (const std::string_view category : kind.categories) groups.names.emplace_back(category);
  groups.names.emplace_back("(not documented)");
  groups.group_of = [&bank, column](index_t row) { return bank.category(row, column); };
  return groups;
}

SampleGroups by_number(const Bank& bank, const BankColumn& kind, index_t column,
                       std::span<const index_t> training) {
  const bool has_absent = kind.kind == BankColumnKind::days_since_contact;
  const double absent = not_contacted(bank.schema());
  std::vector<double> values;
  for (const index_t row : training) {
    const double value = bank.number(row, column);
    if (!has_absent || value != absent) values.push_back(value);
  }
  const QuartileGroups quartiles(std::move(values));
  SampleGroups groups{quartiles.names(kind.name), {}};
  if (has_absent) groups.names.emplace_back("not contacted");
  groups.group_of = [&bank, column, quartiles, has_absent, absent](index_t row) {
    const double value = bank.number(row, column);
    return has_absent && value == absent ? quartiles.num_groups() : quartiles.group_of(value);
  };
  return groups;
}

}  // namespace

void BankSamples::read(index_t index, const std::optional<Augmentation>&,
                       const SampleRow& row) const {
  if (row.labels) *row.labels = bank_.labels()[static_cast<std::size_t>(index)];
  if (!row.features) return;
  const auto size = static_cast<std::size_t>(encoder_.num_features());
  encoder_.encode_into(bank_, index, std::span(row.features, size));
}

std::vector<std::string> BankSamples::column_names() const {
  std::vector<std::string> names;
  for (const BankColumn& column : bank_columns(bank_.schema())) {
    if (column.kind != BankColumnKind::label) names.emplace_back(column.name);
  }
  return names;
}

SampleGroups BankSamples::groups_of(std::string_view column,
                                    std::span<const index_t> training) const {
  const auto columns = bank_columns(bank_.schema());
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const BankColumn& one) { return one.name == column; });
  assert(found != columns.end() && found->kind != BankColumnKind::label);
  const index_t place = found - columns.begin();
  if (found->kind == BankColumnKind::category) return by_category(bank_, *found, place);
  return by_number(bank_, *found, place, training);
}

}  // namespace weft
