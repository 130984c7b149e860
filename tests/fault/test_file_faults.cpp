// The library that makes file operations fail, on the system's own small programs: what it counts,
// where it kills, what it leaves of a write, and whom it leaves alone.
#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
namespace fs = std::filesystem;

// dd opens its file, moves it to standard output (which closes a handle), and writes. A folder in
// which RUN/checkpoints is watched.
struct Place {
  std::string run = fresh_run("file-faults");
  std::string folder = run + "/checkpoints";
  std::string log = run + ".operations";
  Place() { fs::create_directories(folder); }

  ProcessResult run_program(const std::string& program, const std::string& arguments, int at = -1,
                            const std::string& deed = "record") const {
    return run_shell(file_faults(run, log, 0, at, deed) + "WEFT_FAULT_PROGRAM=" + program + " " +
                     program + " " + arguments);
  }
  ProcessResult write_four(int at, const std::string& deed, const std::string& more = "") const {
    fs::remove(folder + "/file");
    return run_program("dd", "if=/dev/zero of=" + folder + "/file bs=8192 count=4 " + more, at,
                       deed);
  }
  std::uintmax_t size() const { return fs::file_size(folder + "/file"); }
  // "open write write", of the log.
  std::string names() const {
    std::string text;
    for (const FileOperation& one : read_operations(log))
      text += (text.empty() ? "" : " ") + one.name;
    return text;
  }
};

}  // namespace

TEST_CASE("operations are counted by name, in order, with their path") {
  const Place place;
  CHECK(place.write_four(-1, "record", "conv=fsync").exit_code == 0);
  CHECK(place.names() == "open close write write write write fsync close");
  const auto operations = read_operations(place.log);
  CHECK(operations[2].path == place.folder + "/file");
  CHECK(operations[2].bytes == 8192);
  CHECK(operations[6].index == 6);
  CHECK(operations[6].outcome == "ok");

  place.run_program("mkdir", place.folder + "/a");
  CHECK(place.names() == "mkdir");
  place.run_program("mv", place.folder + "/a " + place.folder + "/b");
  CHECK(place.names() == "rename");
  CHECK(read_operations(place.log)[0].path == place.folder + "/a -> " + place.folder + "/b");
  place.run_program("rmdir", place.folder + "/b");
  CHECK(place.names() == "rmdir");
  place.run_program("truncate", "-s 100 " + place.folder + "/file");
  CHECK(place.names() == "open ftruncate close");
  place.run_program("fallocate", "-l 5000 " + place.folder + "/file");
  CHECK(contains(place.names(), "fallocate"));
  place.run_program("rm", place.folder + "/file");
  CHECK(place.names() == "unlink");
  CHECK_FALSE(fs::exists(place.folder + "/file"));
}

TEST_CASE("a process killed before, half-way through and after a write") {
  const Place place;
  CHECK(place.write_four(3, "kill-before").exit_code == 137);
  CHECK(place.size() == 8192);
  CHECK(place.write_four(3, "kill-half").exit_code == 137);
  CHECK(place.size() == 8192 + 4096);
  CHECK(place.write_four(3, "kill-after").exit_code == 137);
  CHECK(place.size() == 2 * 8192);
  CHECK(read_operations(place.log).back().outcome == "killed-after");
}

TEST_CASE("half of a write past the page cache stays aligned") {
  const Place place;
  if (place.write_four(-1, "record", "oflag=direct").exit_code != 0) {
    WARN("not tested: no O_DIRECT on this file system");
    return;
  }
  CHECK(place.write_four(3, "kill-half", "oflag=direct").exit_code == 137);
  CHECK(place.size() == 8192 + 4096);
}

TEST_CASE("a disk that is full once, from then on, or fails; writes cut short") {
  const Place place;
  ProcessResult result = place.write_four(3, "enospc");
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "No space left on device"));
  CHECK(place.size() == 8192);
  CHECK(contains(place.write_four(3, "eio").text, "Input/output error"));
  CHECK(contains(place.write_four(0, "edquot").text, "Disk quota exceeded"));
  CHECK(place.write_four(3, "short").exit_code == 0);
  CHECK(place.size() == 4 * 8192);  // dd writes the rest
  place.write_four(2, "short-on");
  CHECK(read_operations(place.log).size() > 7);  // twice as many and more

  place.write_four(2, "enospc-on");
  CHECK(place.names() == "open close write close");
  CHECK(place.size() == 0);
  CHECK(place.run_program("mkdir", place.folder + "/a", 0, "enospc-on").exit_code == 1);
  CHECK_FALSE(fs::exists(place.folder + "/a"));
  // Files can be deleted on a full disk, not on one that fails.
  CHECK(place.run_program("rm", place.folder + "/file", 0, "eio").exit_code == 1);
  CHECK(place.run_program("rm", place.folder + "/file", 0, "enospc-on").exit_code == 0);
}

TEST_CASE("other folders, other programs and other ranks are left alone") {
  const Place place;
  CHECK(place.run_program("mkdir", place.run + "/checkpoints-2", 0, "kill-before").exit_code == 0);
  CHECK(place.names() == "");
  const std::string watched = file_faults(place.run, place.log, 0, 0, "kill-before");
  CHECK(run_shell(watched + "mkdir " + place.folder + "/a").exit_code == 0);
  CHECK(run_shell(watched + "OMPI_COMM_WORLD_RANK=1 WEFT_FAULT_PROGRAM=rmdir rmdir " +
                  place.folder + "/a")
            .exit_code == 0);
  CHECK(read_operations(place.log).at(0).rank == 1);  // counted all the same
}

// The program starts itself once more at its beginning, and its ranks share the log.
TEST_CASE("ranks of the program write into one log") {
  const std::string plan = write_plan({.steps = 2}, "file-faults");
  const std::string run = fresh_run("file-faults");
  const std::string log = run + ".operations";
  const ProcessResult result =
      train(plan, run, {2, "layout.dp=2 layout.zero=1"}, {}, file_faults(run, log));
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  int next[2] = {0, 0};
  for (const FileOperation& one : read_operations(log)) {
    INFO(one.name << " " << one.path);
    REQUIRE((one.rank == 0 || one.rank == 1));
    ++next[one.rank];
  }
  CHECK(next[0] > 0);
  CHECK(next[1] > 0);
}
