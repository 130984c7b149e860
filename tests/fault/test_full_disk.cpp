// A disk that is full, or fails, at each operation on the folder of checkpoints: training goes on
// to its end with an alarm, older checkpoints stay valid, and the exit code tells whether the last
// one was saved. WEFT_DISK_STRIDE=1 takes every operation, a larger number some of them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
namespace fs = std::filesystem;

SmallPlan small_plan(bool async) {
  return {.model = "vit", .hidden = 16, .steps = 6, .every_steps = 2, .keep = 2, .async = async};
}

struct Reference {
  std::string plan;
  Outcome outcome;
  std::vector<FileOperation> operations;
};

Reference record(const Layout& layout, bool async = false) {
  Reference reference{write_plan(small_plan(async), "full-disk"), {}, {}};
  const std::string run = fresh_run("full-disk-reference");
  const std::string log = run + ".operations";
  const ProcessResult result = train(reference.plan, run, layout, {}, file_faults(run, log));
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  reference.outcome = outcome_of(run);
  reference.operations = read_operations(log);
  REQUIRE(has_commit(reference.operations));
  return reference;
}

// Where the folder or the lease cannot be made there is no run: nothing is lost by it. That the
// lease then does not take its holder's name is worth a warning.
bool is_run_begun(const FileOperation& operation) {
  return (operation.name == "mkdir" && operation.path.ends_with("/checkpoints")) ||
         (operation.name == "open" && contains(operation.path, "/.lease") && operation.index == 1);
}
bool is_lease(const FileOperation& operation) { return contains(operation.path, "/.lease"); }

// The operation that the library made fail first; null where it came to none.
const FileOperation* first_failed(const std::vector<FileOperation>& operations) {
  const auto found = std::find_if(operations.begin(), operations.end(),
                                  [](const auto& one) { return one.outcome == "failed"; });
  return found == operations.end() ? nullptr : &*found;
}

void require_no_signal(const ProcessResult& result) {
  CHECK(result.exit_code < 128);
  CHECK_FALSE(contains(result.text, "terminate called"));
  CHECK_FALSE(contains(result.text, "Signal"));
}

void require_training_goes_on(const Reference& reference, const Layout& layout, int rank, int index,
                              const std::string& deed, const std::string& reason) {
  const std::string run = fresh_run("full-disk");
  const std::string log = run + ".operations";
  const ProcessResult result =
      train(reference.plan, run, layout, {}, file_faults(run, log, rank, index, deed));
  const std::vector<FileOperation> operations = read_operations(log);
  const FileOperation* failed = first_failed(operations);
  if (!failed) return;
  INFO(deed << " at operation " << index << " of rank " << rank << ": " << failed->name << " "
            << failed->path << "\n"
            << result.text);
  require_no_signal(result);
  if (is_run_begun(*failed)) {
    CHECK(result.exit_code == 1);
    CHECK(contains(result.text, reason));
    CHECK(contains(result.text, failed->path));
    return;
  }
  // The last thing that is done to the lease is to let it go.
  if (!is_lease(*failed)) {
    CHECK(contains(result.text, "weft: ALARM: "));
    CHECK(contains(result.text, reason));
    CHECK(contains(result.text, failed->path.substr(0, failed->path.find(" -> "))));
  }
  CHECK(outcome_of(run) == reference.outcome);
  const std::vector<std::string> valid = valid_step_folders(run);
  CHECK(valid == step_folders(run));
  if (has_commit(operations)) CHECK_FALSE(valid.empty());
  const bool has_last = std::count(valid.begin(), valid.end(), step_folder(run, 6)) == 1;
  // Where the last sync of all fails, the checkpoint is there but not known to outlast a power cut.
  const bool is_unsure =
      has_last && failed->name == "fsync" && failed->path == run + "/checkpoints";
  if (!is_unsure) CHECK(result.exit_code == (has_last ? 0 : 1));
  // A single fault costs at most the one checkpoint; or an old one stays that should have gone.
  if (!deed.ends_with("-on")) CHECK(valid.size() >= 2);
}

void fail_each(const Layout& layout, std::size_t stride, const std::string& deed,
               const std::string& reason, bool async = false) {
  const Reference reference = record(layout, async);
  for (std::size_t i = 0; i < reference.operations.size(); i += stride) {
    const FileOperation& one = reference.operations[i];
    if (one.name == "unlink" || one.name == "rmdir") continue;
    require_training_goes_on(reference, layout, one.rank, one.index, deed, reason);
  }
}

std::size_t stride(long otherwise) {
  return static_cast<std::size_t>(number_from_environment("WEFT_DISK_STRIDE", otherwise));
}

const std::string full = "No space left on device";

}  // namespace

TEST_CASE("the disk is full for one operation") {
  fail_each(layouts()[0], stride(2), "enospc", full);
}

TEST_CASE("the disk is full from one operation on") {
  fail_each(layouts()[0], stride(3), "enospc-on", full);
}

TEST_CASE("the disk of one of two ranks is full") {
  fail_each({2, "layout.dp=2 layout.zero=1"}, stride(9), "enospc", full);
}

TEST_CASE("the disk is full for one operation of a save that goes on meanwhile") {
  fail_each({2, "layout.dp=2 layout.zero=1"}, stride(7), "enospc", full, true);
}

TEST_CASE("the disk is full from one operation on, saves going on meanwhile") {
  fail_each(layouts()[0], stride(7), "enospc-on", full, true);
}

TEST_CASE("the quota is used up, the disk fails") {
  fail_each(layouts()[0], stride(9), "edquot-on", "Disk quota exceeded");
  fail_each(layouts()[0], stride(7), "eio", "Input/output error");
}

TEST_CASE("writes that take only a part are gone on with") {
  const Reference reference = record(layouts()[0]);
  const std::string run = fresh_run("full-disk");
  const std::string log = run + ".operations";
  const ProcessResult result =
      train(reference.plan, run, layouts()[0], {}, file_faults(run, log, 0, 0, "short-on"));
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  const auto operations = read_operations(log);
  CHECK(std::any_of(operations.begin(), operations.end(),
                    [](const auto& one) { return one.outcome == "short"; }));
  CHECK(outcome_of(run) == reference.outcome);
  CHECK(valid_step_folders(run).size() == 2);
}

// A small file system of its own, which ends with the shell that mounts it.
TEST_CASE("a file system with room for two checkpoints and not for a third") {
  if (run_shell("unshare --mount mount -t tmpfs none /mnt").exit_code != 0) {
    WARN("not tested: mounting a file system is not allowed here");
    return;
  }
  const Reference reference = record(layouts()[0]);
  const std::string old = fs::canonical(test_folder() + "/full-disk-reference/run").string();
  std::uintmax_t bytes = 0;
  for (const auto& file : fs::directory_iterator(step_folder(old, 6))) {
    bytes += (fs::file_size(file) + 4095) / 4096 * 4096;
  }
  const std::string small_disk = fs::path(fresh_run("full-disk")).parent_path().string();
  const std::string kept = fresh_run("full-disk-kept");
  const ProcessResult result = run_shell(
      "unshare --mount sh -c 'mount -t tmpfs -o size=" + std::to_string(2 * bytes + bytes / 2) +
      " none " + small_disk + "; " WEFT_PROGRAM " train " + reference.plan + " --run " +
      small_disk + "/run; code=$?; cp -r " + small_disk + "/run " + kept + "; exit $code'");
  INFO(result.text);
  require_no_signal(result);
  CHECK(result.exit_code == 1);
  CHECK(contains(result.text, "step-000000006"));
  CHECK(outcome_of(kept) == reference.outcome);
  const std::vector<std::string> both = {step_folder(kept, 2), step_folder(kept, 4)};
  CHECK(valid_step_folders(kept) == both);
}
