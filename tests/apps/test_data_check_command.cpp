// `weft data check` without the command line: what it prints, and its exit codes.
#include <catch2/catch.hpp>

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/data_command.hpp"
#include "tests/io/small_cifar10.hpp"

using namespace weft;
using namespace weft::test;
using nlohmann::json;

namespace {

struct Said {
  int code;
  std::string text, out;
};

Said check(const std::string& folder, bool as_json, const std::optional<TaskPlan>& task = {}) {
  std::ostringstream text, out;
  const int code = data_check(folder, "", {.task = task, .json = as_json}, text, out);
  return {code, text.str(), out.str()};
}

// Puts the pixels of one row into another, and a label.
void copy_row(const TemporaryFolder& folder, const std::string& from, std::size_t from_row,
              const std::string& to, std::size_t to_row, char label) {
  const std::string pixels = read_all(folder / from).substr(from_row * 3073 + 1, 3072);
  std::string bytes = read_all(folder / to);
  bytes.replace(to_row * 3073, 3073, label + pixels);
  write_all(folder / to, bytes);
}

}  // namespace

TEST_CASE("data check finds nothing in a sound set", "[data_check]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  const Said people = check(folder.path(), false);
  CHECK(people.code == 0);
  CHECK(people.out.empty());
  CHECK(people.text.find("damaged rows: none\n") != std::string::npos);
  CHECK(people.text.find("leaks between splits: 0\n") != std::string::npos);
  const Said programs = check(folder.path(), true);
  CHECK(programs.code == 0);
  CHECK(programs.text.empty());
  CHECK(programs.out.find('\n') == programs.out.size() - 1);
  const json found = json::parse(programs.out);
  CHECK(found["damaged_rows"].empty());
  CHECK(found["equal_images"].empty());
  CHECK(found["split"]["train"] == 90);
  CHECK(found["split"]["validation"] == 10);
  CHECK(found["split"]["test"] == 20);  // the set's own, as in a run's record
  int train = 0, validation = 0, test = 0, unused = 0;
  for (int c = 0; c < 10; ++c) {
    train += found["class_counts"]["train"][c].get<int>();
    validation += found["class_counts"]["validation"][c].get<int>();
    test += found["class_counts"]["test"][c].get<int>();
    unused += found["class_counts"]["unused"][c].get<int>();
  }
  CHECK(train == 90);
  CHECK(validation == 10);
  CHECK(test == 20);
  CHECK(unused == 0);
}

TEST_CASE("data check tells a leak from equal images of one split", "[data_check]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  copy_row(folder, "test_batch.bin", 3, "test_batch.bin", 13, '\3');
  const Said inside = check(folder.path(), false);
  CHECK(inside.code == 0);
  CHECK(inside.text.find("test_batch.bin row 3 (test, label 3) = test_batch.bin row 13 (test, "
                         "label 3)\n") != std::string::npos);

  copy_row(folder, "test_batch.bin", 3, "data_batch_2.bin", 7, '\5');
  const Said across = check(folder.path(), true);
  CHECK(across.code == 1);
  const json found = json::parse(across.out);
  CHECK(found["leaks"] == 1);
  REQUIRE(found["equal_images"].size() == 1);
  CHECK(found["equal_images"][0]["spans_splits"] == true);
  CHECK(found["equal_images"][0]["labels_differ"] == true);
  CHECK(found["equal_images"][0]["images"].size() == 3);
  CHECK(found["equal_images"][0]["images"][0]["file"] == "data_batch_2.bin");
  CHECK(found["equal_images"][0]["images"][0]["row"] == 7);
  CHECK(check(folder.path(), false).text.find("; A LEAK between splits; LABELS DIFFER\n") !=
        std::string::npos);
  // A split that leaves the image out has no leak.
  TaskPlan task;
  task.train = task.validation = 10;
  int num_leaks = 0;
  for (task.split_seed = 1; task.split_seed <= 20; ++task.split_seed)
    num_leaks += check(folder.path(), true, task).code;
  CHECK(num_leaks > 0);
  CHECK(num_leaks < 20);
}

TEST_CASE("data check ends with 5 for a damaged row, also beside a leak", "[data_check]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 20);
  copy_row(folder, "data_batch_1.bin", 0, "test_batch.bin", 0, '\0');
  copy_row(folder, "data_batch_3.bin", 4, "data_batch_3.bin", 4, '\x63');
  const Said people = check(folder.path(), false);
  CHECK(people.code == 5);
  CHECK(people.text.find("data_batch_3.bin row 4 (") != std::string::npos);
  CHECK(people.text.find("label 99): the label is not 0..9\n") != std::string::npos);
  CHECK(json::parse(check(folder.path(), true).out)["damaged_rows"][0]["label"] == 99);
}

TEST_CASE("data check lists twenty groups to people and all to programs", "[data_check]") {
  const TemporaryFolder folder;
  write_small_cifar10(folder.path(), 40);
  for (std::size_t row = 0; row < 40; ++row)
    copy_row(folder, "data_batch_1.bin", row, "data_batch_4.bin", row, '\1');
  const Said people = check(folder.path(), false);
  CHECK(people.text.find("equal in every pixel: 40\n") != std::string::npos);
  CHECK(people.text.find("  and 20 more; --json has all\n") != std::string::npos);
  CHECK(json::parse(check(folder.path(), true).out)["equal_images"].size() == 40);
}

TEST_CASE("data check names what keeps it from reading", "[data_check]") {
  const TemporaryFolder folder;
  CHECK(error_of([&] { check("/nowhere", true); })->code() == ExitCode::data);
  write_small_cifar10(folder.path(), 20);
  TaskPlan task;
  task.train = 200;
  task.validation = 10;
  CHECK(says(error_of([&] { check(folder.path(), true, task); }), "nearest legal"));
}
