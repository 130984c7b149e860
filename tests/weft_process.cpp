#include "tests/weft_process.hpp"

#include <errno.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace weft::test {

namespace {

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

nlohmann::json ProcessResult::json() const {
  std::string line, last;
  std::istringstream lines(out);
  while (std::getline(lines, line)) {
    if (!line.empty()) last = line;
  }
  if (last.empty() || last.front() != '{')
    throw std::runtime_error("no JSON on standard output; stderr says: " + text);
  return nlohmann::json::parse(last);
}

std::string test_folder() {
  const std::string folder = WEFT_TEST_FOLDER "/" + std::string(program_invocation_short_name);
  std::filesystem::create_directories(folder);
  return folder;
}

std::string fresh_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(test_folder()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder.string();
}

ProcessResult run_shell(const std::string& command) {
  const std::string folder = fresh_folder("process");
  const auto begin = std::chrono::steady_clock::now();
  const int status = std::system(
      ("( " + command + " ) >" + folder + "/out 2>" + folder + "/text </dev/null").c_str());
  ProcessResult result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(folder + "/out");
  result.text = read_file(folder + "/text");
  return result;
}

ProcessResult run_weft(const std::string& arguments) {
  return run_shell(WEFT_PROGRAM " " + arguments);
}

ProcessResult run_weft_ranks(int num_ranks, const std::string& arguments) {
  return run_shell(WEFT_LAUNCHER " " + std::to_string(num_ranks) + " " WEFT_PROGRAM " " +
                   arguments);
}

}  // namespace weft::test
