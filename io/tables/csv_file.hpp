// A CSV file, mapped read-only: all ranks of a node share its pages. What its form may be and which
// faults are found: csv_table.
#pragma once

#include <string>

#include "io/mapped_file.hpp"
#include "io/tables/csv_table.hpp"

namespace weft {

class CsvFile {
 public:
  // Throws Error(data) if the file cannot be mapped, and what CsvTable throws.
  CsvFile(const std::string& path, const CsvFormat& format)
      : file_(path), table_(text_of(file_), path, format) {}

  const CsvTable& table() const { return table_; }
  std::string_view text() const { return text_of(file_); }

 private:
  static std::string_view text_of(const MappedFile& file) {
    return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
  }

  MappedFile file_;
  CsvTable table_;  // of the mapped bytes, which stay where they are when this object moves
};

}  // namespace weft
