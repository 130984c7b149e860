// `weft data make`, `info` and `check`: which data set is meant. What is done with it is in a file
// for each set; the command line itself is main's.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "apps/data_set_commands.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// "cifar10", ...
std::vector<std::string> data_set_names();

// Writes a synthetic set in the official format; refuses existing files. Returns the exit code;
// what goes wrong is thrown as an Error.
int data_make(const DataMakeOptions& options, std::ostream& text, std::ostream& out);

// Rows, classes, figures. `dataset`: one of data_set_names(), or empty: the one that lies at
// `path`, a folder (or its subfolder of the set's name) or a file of a set of one file. Throws
// Error(data) where none is recognized, Error(usage) that lists them where several are.
int data_info(const std::string& path, const std::string& dataset, bool json, std::ostream& text,
              std::ostream& out);

// Reads every byte. Samples are split as the options' task says, whose data set is meant then;
// without one, as fits the set. Returns 5 for damaged rows, else 1 for samples that are in two
// parts, else 0.
// Throws as data_info, and Error(data) where files are missing or of wrong sizes, Error(usage)
// where split or slices are not legal.
int data_check(const std::string& path, const std::string& dataset, const DataCheckOptions& options,
               std::ostream& text, std::ostream& out);

}  // namespace weft
