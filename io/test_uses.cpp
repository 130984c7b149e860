#include "io/test_uses.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.hpp"
#include "io/file.hpp"

namespace weft {

namespace fs = std::filesystem;

namespace {

std::string path_in(const std::string& run_folder) {
  return (fs::path(run_folder) / "test_uses.jsonl").string();
}

// Empty where there is none.
std::string read_uses(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const auto require_readable = [&](bool is_readable) {
    require(is_readable, ExitCode::failed,
            fmt::format("{}: expected the record of the uses of the test split, found what cannot "
                        "be read; make it a file again that may be read",
                        path));
  };
  require_readable(fs::is_regular_file(path, ignored));
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  require_readable(file.good());
  return text;
}

}  // namespace

void add_test_use(const std::string& run_folder, std::string_view json_object) {
  const std::string path = path_in(run_folder);
  const std::string before = read_uses(path);
  OutputFile file(path, OutputFile::Mode::append);
  const bool is_torn = !before.empty() && !before.ends_with('\n');
  file.write_line(std::string(is_torn ? "\n" : "") + std::string(json_object));
  file.sync();
  file.close();
  sync_folder(run_folder);
}

index_t count_test_uses(const std::string& run_folder) {
  const std::string text = read_uses(path_in(run_folder));
  index_t lines = text.empty() || text.ends_with('\n') ? 0 : 1;
  for (const char c : text) lines += c == '\n' ? 1 : 0;
  return lines;
}

}  // namespace weft
