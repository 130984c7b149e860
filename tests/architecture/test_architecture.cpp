// The rules of rules.hpp on the repository itself. A failure lists file, line and what to change.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/architecture/rules.hpp"

using namespace weft::architecture;
namespace fs = std::filesystem;

namespace {

const fs::path root = WEFT_SOURCE_DIR;
const fs::path build = WEFT_BUILD_DIR;

constexpr std::size_t max_file_lines = 470;
constexpr std::size_t max_function_lines = 80;
constexpr int max_readme_lines = 80;

// Read once: eighteen rules look at the same sources.
const Sources& sources() {
  static const Sources read = read_sources(root);
  return read;
}

std::string content_of(const fs::path& file) {
  std::ostringstream content;
  content << std::ifstream(file, std::ios::binary).rdbuf();
  return content.str();
}

void check_none(const std::vector<Fault>& faults) {
  INFO(print(faults));
  CHECK(faults.empty());
}

// True where a folder holds at least one file: git keeps no empty ones.
bool has_files(const fs::path& folder) {
  if (!fs::is_directory(folder)) return false;
  const fs::recursive_directory_iterator entries(folder);
  return std::any_of(begin(entries), end(entries),
                     [](const fs::directory_entry& entry) { return entry.is_regular_file(); });
}

}  // namespace

TEST_CASE("the sources are found") {
  CHECK(sources().size() > 20);
  CHECK(std::any_of(sources().begin(), sources().end(),
                    [](const SourceFile& file) { return file.path == "core/range.hpp"; }));
}

TEST_CASE("folder law: who includes whom") { check_none(folder_law(sources())); }

TEST_CASE("third parties stay behind their fences") { check_none(third_party_fences(sources())); }

TEST_CASE("the oracle includes the standard library only") {
  check_none(oracle_is_std_only(sources()));
}

TEST_CASE("a source includes its own header first") { check_none(own_header_first(sources())); }

TEST_CASE("MPI_COMM_WORLD appears once") { check_none(world_is_named_once(sources())); }

TEST_CASE("exact mode: no reduction in an order that is not ours") {
  check_none(no_foreign_reductions(sources()));
}

TEST_CASE("exact mode: no libm in kernels and layers") {
  check_none(no_libm_in_kernels(sources()));
}

TEST_CASE("exact mode: fma only as std::fma") { check_none(fma_is_explicit(sources())); }

TEST_CASE("exact mode: no pragma or attribute changes arithmetic") {
  check_none(no_local_arithmetic_flags(sources()));
}

TEST_CASE("exact mode: every source is compiled with the flags of exact mode") {
  const fs::path commands = build / "compile_commands.json";
  INFO("configure with -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, as the presets do");
  REQUIRE(fs::exists(commands));
  check_none(arithmetic_flags(content_of(commands)));
}

TEST_CASE("files open with a comment") { check_none(files_open_with_comment(sources())); }

TEST_CASE("headers open with #pragma once") { check_none(headers_have_pragma_once(sources())); }

TEST_CASE("no file is too long") { check_none(file_length(sources(), max_file_lines)); }

TEST_CASE("long functions are reported") {
  // A guess from braces and a matter of judgement, so it warns and does not fail.
  const std::vector<Fault> faults = function_length(sources(), max_function_lines);
  if (!faults.empty())
    WARN("functions over " << max_function_lines << " lines:\n" << print(faults));
}

TEST_CASE("file names say what is inside") { check_none(file_names(sources())); }

TEST_CASE("the root folder holds what it should") {
  std::vector<std::string> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    entries.push_back(entry.path().filename().string());
  }
  std::sort(entries.begin(), entries.end());
  std::vector<std::string> ignore;
  std::istringstream lines(content_of(root / ".gitignore"));
  for (std::string line; std::getline(lines, line);) ignore.push_back(line);
  check_none(root_entries(entries, ignore));
  CHECK(fs::exists(root / "README.md"));
}

TEST_CASE("every folder has a short README") {
  std::vector<Folder> folders;
  for (const char* path :
       {"core", "core/kernels", "parallel", "parallel/comm", "parallel/mesh", "parallel/tensor",
        "parallel/data", "parallel/pipeline", "parallel/plan", "layers", "io", "io/checkpoint",
        "io/tables", "io/text", "apps", "tests", "tests/oracle", "tests/architecture", "perf"}) {
    if (!has_files(root / path)) continue;
    const fs::path readme = root / path / "README.md";
    const std::string content = content_of(readme);
    const auto num_lines = std::count(content.begin(), content.end(), '\n');
    folders.push_back({path, fs::exists(readme) ? static_cast<int>(num_lines) : -1});
  }
  check_none(readmes(folders, max_readme_lines));
}
