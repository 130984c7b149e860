// `weft data make` and `weft data info`. Text for people goes to `text`, the JSON line to `out`;
// the command line itself is main's.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "core/range.hpp"

namespace weft {

struct DataMakeOptions {
  std::string dataset = "cifar10";
  std::string folder;
  index_t rows_per_file = 10000;
  std::uint64_t seed = 1;
  bool json = false;
};

// Writes a synthetic set in the official format; refuses existing files. Returns the exit code;
// what goes wrong is thrown as an Error.
int data_make(const DataMakeOptions& options, std::ostream& text, std::ostream& out);

// Rows, classes, pixel statistics, and whether the folder holds the official set.
int data_info(const std::string& path, bool json, std::ostream& text, std::ostream& out);

}  // namespace weft
