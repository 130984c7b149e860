// UCI's Bank Marketing as typed columns: either official file, told by its header. It knows what
// the file says; which rows are for training and what a row is as numbers, bank_encoder knows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.hpp"
#include "io/tables/bank_schema.hpp"
#include "io/tables/csv_file.hpp"

namespace weft {

class Bank {
 public:
  // Opens a file, or in a folder or its subfolder bank/ the one of bank-full.csv and
  // bank-additional-full.csv that is there (where both are, name the file). Reads all of it; throws
  // Error(data) on what is no such table: a column missing, one too many, a field that is no
  // number, a y that is neither yes nor no, no rows.
  //
  // With FaultyRow::skip rows that break the CSV form are left out and counted in skipped(); all
  // else is refused in any case, since it says that this is another table.
  explicit Bank(const std::string& path,
                CsvFormat::FaultyRow faulty_row = CsvFormat::FaultyRow::refuse);

  const std::string& path() const { return file_.table().name(); }
  BankSchema schema() const { return schema_; }
  index_t num_rows() const { return file_.table().num_rows(); }
  const CsvSkipped& skipped() const { return file_.table().skipped(); }

  // By row (the file's order, which is by date) and column (of bank_columns()). Any number of
  // threads may read.
  double number(index_t row, index_t column) const { return numbers_[at(column)][at(row)]; }
  // Which of the documented categories; their number where it is none of them.
  index_t category(index_t row, index_t column) const { return categories_[at(column)][at(row)]; }
  const std::vector<int>& labels() const { return labels_; }  // 0 no, 1 yes
  // The row's fields as text in the file's order of columns, y included.
  void read_into(index_t row, CsvRow& fields) const { file_.table().read_into(row, fields); }
  const CsvTable& table() const { return file_.table(); }

  // Of each row the number of its group: rows with the same text in `column`, numbered from 0 as
  // they appear. Throws Error(usage) where there is no such column; so there is no split by
  // customer.
  std::vector<index_t> groups(std::string_view column) const;

  // 32 hexadecimal digits that tell this data from other data: a hash of the file's bytes.
  std::string fingerprint() const;

 private:
  static std::size_t at(index_t i) { return static_cast<std::size_t>(i); }
  void read_columns();

  CsvFile file_;
  BankSchema schema_;
  std::vector<std::vector<double>> numbers_;           // [column][row], or empty
  std::vector<std::vector<std::uint8_t>> categories_;  // [column][row], or empty
  std::vector<int> labels_;
};

}  // namespace weft
