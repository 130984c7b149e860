// Writing: complete or not at all, and never silently failing.
#include <catch2/catch.hpp>

#include <signal.h>
#include <sys/resource.h>

#include "io/file.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

std::ptrdiff_t num_entries(const TemporaryFolder& folder) {
  return std::distance(std::filesystem::directory_iterator(folder.path()), {});
}

// While it lives no file may grow beyond `bytes`: a disk that is full, for this process alone.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_{};
};

}  // namespace

TEST_CASE("a whole file is written and replaced", "[file]") {
  const TemporaryFolder folder;
  write_file(folder / "a", "one");
  CHECK(read_all(folder / "a") == "one");
  write_file(folder / "a", std::string(100000, 'x'));
  CHECK(read_all(folder / "a") == std::string(100000, 'x'));
  CHECK(num_entries(folder) == 1);
}

TEST_CASE("a file that is not committed leaves nothing", "[file]") {
  const TemporaryFolder folder;
  write_all(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write("new");
  }
  CHECK(read_all(folder / "a") == "old");
  CHECK(num_entries(folder) == 1);
}

TEST_CASE("a write that fails half-way leaves the old file", "[file]") {
  const TemporaryFolder folder;
  write_all(folder / "a", "old");
  std::optional<Error> error;
  {
    const FileSizeLimit limit(1000);
    error = error_of([&] { write_file(folder / "a", std::string(5000, 'x')); });
  }
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::failed);
  CHECK(says(error, "cannot write to"));
  CHECK(says(error, "File too large"));
  CHECK(read_all(folder / "a") == "old");
  CHECK(num_entries(folder) == 1);
}

TEST_CASE("a full disk is an error with the system's reason", "[file]") {
  if (!std::filesystem::exists("/dev/full")) return;
  const auto error = error_of([] {
    OutputFile file("/dev/full", OutputFile::Mode::append);
    file.write_line("a line");
  });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::failed);
  CHECK(says(error, "cannot write to /dev/full: No space left on device"));
  CHECK(says(error, "free some space"));
}

TEST_CASE("lines are appended", "[file]") {
  const TemporaryFolder folder;
  for (int i = 0; i < 3; ++i) {
    OutputFile file(folder / "log", i == 0 ? OutputFile::Mode::create : OutputFile::Mode::append);
    file.write_line(std::to_string(i));
  }
  CHECK(read_all(folder / "log") == "0\n1\n2\n");
  const auto error = error_of([&] { OutputFile(folder / "log", OutputFile::Mode::create); });
  CHECK(says(error, "File exists"));
}

TEST_CASE("folders that cannot be made or written to", "[file]") {
  const TemporaryFolder folder;
  write_all(folder / "file", "x");
  CHECK(says(error_of([&] { make_folder(folder / "file/inner"); }), "cannot create the folder"));
  CHECK(says(error_of([&] { write_file(folder / "none/a", "x"); }), "No such file or directory"));
}
