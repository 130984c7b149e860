// What a path after --checkpoint means: a checkpoint, a run, and whose run it is.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>

#include "apps/checkpoint_choice.hpp"
#include "core/error.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
namespace fs = std::filesystem;

namespace {

// RUN with run.jsonl and checkpoints of steps 2 and 10, each with a MANIFEST.
class SmallRun {
 public:
  SmallRun() {
    for (const char* step : {"step-000000002", "step-000000010", "aside-step-000000012-ab"}) {
      fs::create_directories(checkpoints() + "/" + step);
      std::ofstream(checkpoints() + "/" + step + "/MANIFEST") << "x";
    }
    std::ofstream(run() + "/run.jsonl") << "";
  }
  std::string outside() const { return fs::canonical(folder_.path()).string(); }
  std::string run() const { return outside() + "/run"; }
  std::string checkpoints() const { return run() + "/checkpoints"; }

 private:
  test::TemporaryFolder folder_;
};

void check_one(const std::string& path, const std::string& checkpoint, const std::string& run) {
  INFO(path);
  const CheckpointChoice choice = choose_checkpoint(path);
  REQUIRE(choice.candidates.size() == 1);
  CHECK(choice.candidates[0].path == checkpoint);
  CHECK(choice.run_folder == run);
}

void check_fault(const std::string& path, const std::string& part) {
  try {
    choose_checkpoint(path);
    FAIL(path);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::data);
    CHECK_THAT(error.what(), Catch::Contains(part) && Catch::Contains(path));
  }
}

}  // namespace

TEST_CASE("a run or its folder of checkpoints: all of them, the newest last") {
  const SmallRun small;
  for (const std::string& path : {small.run(), small.run() + "/", small.checkpoints()}) {
    INFO(path);
    const CheckpointChoice choice = choose_checkpoint(path);
    REQUIRE(choice.candidates.size() == 2);
    CHECK(choice.candidates[0].step == 2);
    CHECK(choice.candidates[1].step == 10);
    CHECK(choice.candidates[1].path == small.checkpoints() + "/step-000000010");
    CHECK(choice.run_folder == small.run());
  }
}

TEST_CASE("a checkpoint: by its folder, a slash behind it, a link to it, one set aside") {
  const SmallRun small;
  const std::string step = small.checkpoints() + "/step-000000002";
  check_one(step, step, small.run());
  check_one(step + "/", step, small.run());
  fs::create_symlink(step, small.outside() + "/link");
  check_one(small.outside() + "/link", step, small.run());
  const std::string aside = small.checkpoints() + "/aside-step-000000012-ab";
  check_one(aside, aside, small.run());
}

TEST_CASE("a checkpoint that was copied out of its run, or whose run is gone") {
  const SmallRun small;
  const std::string copy = small.outside() + "/copy";
  fs::copy(small.checkpoints() + "/step-000000002", copy);
  check_one(copy, copy, "");
  fs::remove(small.run() + "/run.jsonl");
  const std::string step = small.checkpoints() + "/step-000000002";
  check_one(step, step, "");
}

TEST_CASE("nothing, a file, a folder of something else, a run without checkpoints") {
  const SmallRun small;
  check_fault(small.outside() + "/none", "found nothing");
  check_fault(small.run() + "/run.jsonl", "found something else");
  check_fault(small.outside(), "without MANIFEST");
  fs::remove_all(small.checkpoints());
  fs::create_directory(small.checkpoints());
  check_fault(small.run(), "holds no checkpoint");
}
