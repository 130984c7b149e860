// Each rank killed before, half-way through and after each operation on the folder of checkpoints:
// from the first commit on there is a valid checkpoint at any moment, and the resumed run has the
// bits of the undisturbed one. WEFT_SWEEP_STRIDE=1 takes every point, a larger number some of them.
#include <catch2/catch.hpp>

#include <set>
#include <string>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;

// Three checkpoints of which two stay: the last of them retires the first.
SmallPlan small_plan(bool async) {
  return {.model = "vit", .hidden = 16, .steps = 6, .every_steps = 2, .keep = 2, .async = async};
}

struct Point {
  int rank;
  int index;
  std::string deed;
};

// In the order in which they will be tried; only writes have a half.
std::vector<Point> points_of(const std::vector<FileOperation>& operations) {
  std::vector<Point> points;
  for (const FileOperation& one : operations) {
    points.push_back({one.rank, one.index, "kill-before"});
    if (contains(one.name, "write")) points.push_back({one.rank, one.index, "kill-half"});
    points.push_back({one.rank, one.index, "kill-after"});
  }
  return points;
}

void require_survival(const std::string& plan, const Layout& layout, const Layout& other,
                      const Point& point, const Outcome& undisturbed) {
  const std::string run = fresh_run("sweep");
  const std::string log = run + ".operations";
  const ProcessResult killed =
      train(plan, run, layout, {}, file_faults(run, log, point.rank, point.index, point.deed));
  const std::vector<FileOperation> done = read_operations(log);
  INFO("rank " << point.rank << ", operation " << point.index << ", " << point.deed << "\n"
               << killed.text);
  REQUIRE_FALSE(done.empty());
  CHECK(killed.exit_code != 0);

  const std::vector<std::string> valid = valid_step_folders(run);
  if (has_commit(done)) CHECK_FALSE(valid.empty());
  // A step's folder is there whole or not at all, other than in the moment of its replacement.
  CHECK(valid == step_folders(run));

  const ProcessResult resumed = train(plan, run, other, "--resume auto");
  INFO("resumed on " << other.num_ranks << " ranks (" << other.keys << ")\n" << resumed.text);
  REQUIRE(resumed.exit_code == 0);
  CHECK(outcome_of(run) == undisturbed);
  const std::vector<std::string> in_the_end = {step_folder(run, 4), step_folder(run, 6)};
  CHECK(valid_step_folders(run) == in_the_end);
  // What the killed one left is swept.
  const ProcessResult rest = run_shell("ls -A " + run + "/checkpoints | grep -v '^step-' || true");
  CHECK(rest.out == ".lease\n");
}

void sweep(const Layout& layout, const Layout& other, bool async = false) {
  const std::string plan = write_plan(small_plan(async), "sweep");
  const std::string reference = fresh_run("sweep-reference");
  const std::string log = reference + ".operations";
  const ProcessResult recorded = train(plan, reference, layout, {}, file_faults(reference, log));
  INFO(recorded.text);
  REQUIRE(recorded.exit_code == 0);
  const Outcome undisturbed = outcome_of(reference);
  const std::vector<FileOperation> operations = read_operations(log);
  std::set<int> ranks;
  std::set<std::string> names;
  for (const FileOperation& one : operations) {
    ranks.insert(one.rank);
    names.insert(one.name);
  }
  // All that the sweep is about does happen, on all ranks.
  CHECK(static_cast<int>(ranks.size()) == layout.num_ranks);
  for (const char* name : {"open", "fsync", "rename", "mkdir", "unlink", "rmdir"}) {
    INFO(name);
    CHECK(names.contains(name));
  }
  CHECK(has_commit(operations));

  const std::vector<Point> points = points_of(operations);
  const auto stride = static_cast<std::size_t>(number_from_environment("WEFT_SWEEP_STRIDE", 11));
  WARN(points.size() << " points, of which every " << stride << ". is tried");
  for (std::size_t i = 0; i < points.size(); i += stride) {
    require_survival(plan, layout, other, points[i], undisturbed);
  }
}

}  // namespace

TEST_CASE("two ranks with half of the state each, killed at each file operation") {
  sweep({2, "layout.dp=2 layout.zero=1"}, {1, ""});
}

TEST_CASE("two ranks with half of the model each, killed at each file operation") {
  sweep({2, "layout.tp=2 layout.sequence_parallel=true"}, {2, "layout.pp=2"});
}

TEST_CASE("two ranks killed at each file operation of saves that go on meanwhile") {
  sweep({2, "layout.dp=2 layout.zero=1"}, {2, "layout.tp=2"}, true);
}
