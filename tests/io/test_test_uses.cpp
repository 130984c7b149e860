// The record of the uses of the test split: lines are added and counted, never lost.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "io/run_log.hpp"
#include "io/test_uses.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("uses of the test split are counted line by line") {
  const TemporaryFolder folder;
  CHECK(count_test_uses(folder.path()) == 0);
  add_test_use(folder.path(), R"({"step":1})");
  CHECK(count_test_uses(folder.path()) == 1);
  add_test_use(folder.path(), R"({"step":2})");
  CHECK(count_test_uses(folder.path()) == 2);
  CHECK(text_of(folder.path() + "/test_uses.jsonl") == "{\"step\":1}\n{\"step\":2}\n");
}

TEST_CASE("half a line counts as a use and does not swallow the next one") {
  const TemporaryFolder folder;
  std::ofstream(folder.path() + "/test_uses.jsonl") << "{\"step\":1}\n{\"st";
  CHECK(count_test_uses(folder.path()) == 2);
  add_test_use(folder.path(), R"({"step":3})");
  CHECK(count_test_uses(folder.path()) == 3);
  CHECK(text_of(folder.path() + "/test_uses.jsonl") == "{\"step\":1}\n{\"st\n{\"step\":3}\n");
}

TEST_CASE("a run that goes back to an earlier step, even to none, keeps its uses") {
  const TemporaryFolder folder;
  const std::string run = folder.path() + "/run";
  { RunLog log(run, "plan"); }
  add_test_use(run, R"({"step":9})");
  { RunLog::resume(run, "plan", 0); }
  CHECK(count_test_uses(run) == 1);
}

TEST_CASE("a record that cannot be read or written is an error that names it") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() + "/test_uses.jsonl");
  CHECK_THROWS_WITH(count_test_uses(folder.path()), Catch::Contains("test_uses.jsonl"));
  CHECK_THROWS_WITH(add_test_use(folder.path(), "{}"), Catch::Contains("test_uses.jsonl"));
  CHECK_THROWS_WITH(add_test_use(folder.path() + "/none", "{}"), Catch::Contains("none"));
}
