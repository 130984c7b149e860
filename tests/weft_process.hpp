// Runs the program as a user would, by the launcher, and gives back its exit code and output.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace weft::test {

struct ProcessResult {
  int exit_code = 0;
  std::string out;   // standard output
  std::string text;  // standard error
  double seconds = 0.0;

  // The JSON object on the last line of standard output; throws where there is none.
  nlohmann::json json() const;
};

// `command` through the shell, standard input closed.
ProcessResult run_shell(const std::string& command);

// weft with `arguments`, alone.
ProcessResult run_weft(const std::string& arguments);

// weft with `arguments` on `num_ranks` ranks of the launcher.
ProcessResult run_weft_ranks(int num_ranks, const std::string& arguments);

// Where the files of this test program go, below the build: two programs may run at once.
std::string test_folder();

// A folder in it, emptied first.
std::string fresh_folder(const std::string& name);

}  // namespace weft::test
