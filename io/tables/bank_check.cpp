#include "io/tables/bank_check.hpp"

#include <algorithm>

namespace weft {

namespace {

// Fields of the file that are compared: all but y and, unless `with_leaks`, but those that are
// known after the call only.
std::vector<std::size_t> compared_fields(const Bank& data, bool with_leaks) {
  std::vector<std::size_t> fields;
  const auto columns = bank_columns(data.schema());
  const auto& names = data.table().column_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto column = std::find_if(columns.begin(), columns.end(),
                                     [&](const BankColumn& one) { return one.name == names[i]; });
    const bool is_compared =
        column->kind != BankColumnKind::label && (with_leaks || !column->is_leak);
    if (is_compared) fields.push_back(i);
  }
  return fields;
}

}  // namespace

RowCheck check(const Bank& data, const Split& split) {
  const std::vector<RowPlace> rows = places_of(data.labels(), split);
  CsvRow row;
  const auto keys = [&](bool with_leaks, void (*add)(std::string_view, std::string&)) -> AddKey {
    return [&row, &data, add, fields = compared_fields(data, with_leaks)](index_t index,
                                                                          std::string& key) {
      data.read_into(index, row);
      for (const std::size_t field : fields) add(row.fields[field], key);
    };
  };
  return {.class_counts = count_classes(rows, 2),
          .exact = group_rows("all columns but y", rows, keys(true, add_field)),
          .but_space = group_rows("all columns but y, up to white space", rows,
                                  keys(true, add_field_but_space)),
          .in_some = group_rows("all columns but y and duration, up to white space", rows,
                                keys(false, add_field_but_space))};
}

}  // namespace weft
