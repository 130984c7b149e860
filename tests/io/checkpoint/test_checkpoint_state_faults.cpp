// Saves under a failing disk (ranks as threads): each call that fails in turn, on one rank. All
// ranks say the same, older checkpoints stay, nothing half is left, and the next save works.
#include <catch2/catch.hpp>

#include <cerrno>
#include <filesystem>
#include <mutex>

#include "io/checkpoint/verify.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/system_calls.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;

namespace fs = std::filesystem;

namespace {

const SomeModel& model() {
  static const SomeModel some{
      {"up", cut({12, 4}, 0)}, {"down", cut({5, 12}, 1)}, {"norm", whole({30})}};
  return some;
}
const StateLayout layout{.shards = 2, .tp = 2, .dp = 2, .zero = true};

// What all ranks were told; fails where they were told different things.
SaveResult save(const std::string& folder, index_t step, index_t keep) {
  std::mutex mutex;
  std::vector<SaveResult> results;
  on_state_ranks(model(), layout, [&](StateRank& rank) {
    rank.fill(static_cast<std::uint64_t>(step));
    const SaveResult mine = rank.save(folder, step, keep);
    const std::lock_guard lock(mutex);
    results.push_back(mine);
  });
  for (const SaveResult& one : results) {
    CHECK(one.is_saved == results[0].is_saved);
    CHECK(one.fault == results[0].fault);
    CHECK(one.num_bytes == results[0].num_bytes);
  }
  return results[0];
}

std::vector<index_t> steps_in(const std::string& folder) {
  std::vector<index_t> steps;
  for (const CheckpointPlace& place : list_checkpoints(folder)) steps.push_back(place.step);
  return steps;
}

bool is_whole(const std::string& folder, index_t step) {
  bool is_whole = false;
  const auto error = error_of([&] {
    const Checkpoint checkpoint = open_checkpoint(folder + "/" + step_folder_name(step));
    is_whole = checkpoint.manifest.step == step && verify_checkpoint(checkpoint).num_faults == 0;
  });
  return !error && is_whole;
}

bool has_staging(const std::string& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with(".staging")) return true;
  }
  return false;
}

struct Fault {
  Call call;
  int reason;
  const char* name;
  // Where it reads, a fault may also mean another way to read, or an older checkpoint that stays.
  bool is_always_told = true;
};

// Saves step 3 beside 1 and 2, its call number k failing. Returns whether there was such a call.
bool save_with(const Fault& fault, int k) {
  INFO(fault.name << ", call " << k);
  const TemporaryFolder folder;
  save(folder.path(), 1, 2);
  save(folder.path(), 2, 2);
  SaveResult result;
  int num_calls = 0;
  {
    const SystemFault armed(fault.call, fault.reason, k);
    result = save(folder.path(), 3, 2);
    num_calls = armed.num_calls();
  }
  const bool was_hit = num_calls > k;
  const bool is_told = !result.is_saved || !result.fault.empty();
  if (is_told) CHECK(was_hit);
  if (was_hit && fault.is_always_told) CHECK(is_told);
  CHECK_FALSE(has_staging(folder.path()));
  CHECK(is_whole(folder.path(), 2));
  if (result.is_saved) {
    CHECK(is_whole(folder.path(), 3));
  } else {
    CHECK(steps_in(folder.path()) == std::vector<index_t>{2, 1});
    CHECK(is_whole(folder.path(), 1));
    const SaveResult again = save(folder.path(), 3, 2);
    CHECK(again.is_saved);
    CHECK(again.fault == "");
  }
  // Whatever is left over goes, and the run goes on.
  sweep(folder.path());
  const SaveResult next = save(folder.path(), 4, 2);
  CHECK(next.is_saved);
  CHECK(next.fault == "");
  CHECK(steps_in(folder.path()) == std::vector<index_t>{4, 3});
  CHECK(is_whole(folder.path(), 3));
  CHECK(is_whole(folder.path(), 4));
  return was_hit;
}

}  // namespace

TEST_CASE("whichever call fails, nothing is lost", "[checkpoint][state][faults]") {
  for (const Fault& fault :
       {Fault{Call::open, EMFILE, "open EMFILE", false},
        Fault{Call::pwrite, ENOSPC, "pwrite ENOSPC"}, Fault{Call::pwrite, EIO, "pwrite EIO"},
        Fault{Call::fsync, EIO, "fsync EIO"}, Fault{Call::mkdir, EDQUOT, "mkdir EDQUOT"},
        Fault{Call::rename, EIO, "rename EIO"}, Fault{Call::pread, EIO, "pread EIO", false},
        Fault{Call::unlink, EIO, "unlink EIO"}, Fault{Call::rmdir, EIO, "rmdir EIO"}}) {
    int k = 0;
    while (k < 200 && save_with(fault, k)) ++k;
    INFO(fault.name);
    CHECK(k >= 1);
    CHECK(k < 200);
  }
}

TEST_CASE("calls that do half of their work are made again", "[checkpoint][state][faults]") {
  for (const Call call : {Call::pwrite, Call::pread}) {
    const TemporaryFolder folder;
    index_t step = 0;
    for (bool was_hit = true; was_hit;) {
      INFO("step " << step);
      const SystemFault armed(call, SystemFault::half, static_cast<int>(step));
      const SaveResult result = save(folder.path(), ++step, 2);
      was_hit = armed.num_calls() >= step;
      CHECK(result.is_saved);
      CHECK(result.fault == "");
    }
    CHECK(step > layout.num_ranks());
    CHECK(is_whole(folder.path(), step));
    CHECK(is_whole(folder.path(), step - 1));
  }
}

TEST_CASE("the newest valid checkpoints stay, as many as asked for",
          "[checkpoint][state][faults]") {
  for (const index_t keep : {index_t{1}, index_t{3}}) {
    const TemporaryFolder folder;
    for (index_t step = 1; step <= 6; ++step) {
      save(folder.path(), step, keep);
      CHECK(steps_in(folder.path()).size() == static_cast<std::size_t>(std::min(step, keep)));
      CHECK(steps_in(folder.path()).front() == step);
    }
  }
  const TemporaryFolder folder;
  for (const index_t step : {1, 2, 3}) save(folder.path(), step, 3);
  // One that cannot be opened is none of the three.
  write_all(folder / (step_folder_name(3) + "/MANIFEST"), "nothing");
  save(folder.path(), 4, 3);
  CHECK(steps_in(folder.path()) == std::vector<index_t>{4, 3, 2, 1});
  save(folder.path(), 5, 3);
  CHECK(steps_in(folder.path()) == std::vector<index_t>{5, 4, 3, 2});
  save(folder.path(), 6, 3);
  CHECK(steps_in(folder.path()) == std::vector<index_t>{6, 5, 4});
  // Later ones are another's to judge.
  save(folder.path(), 9, 3);
  save(folder.path(), 7, 1);
  CHECK(steps_in(folder.path()) == std::vector<index_t>{9, 7});
}

TEST_CASE("a step that is there is not written over", "[checkpoint][state][faults]") {
  const TemporaryFolder folder;
  save(folder.path(), 1, 2);
  const std::string manifest = read_all(folder / (step_folder_name(1) + "/MANIFEST"));
  const SaveResult again = save(folder.path(), 1, 2);
  CHECK_FALSE(again.is_saved);
  CHECK_THAT(again.fault, Catch::Contains("step-000000001"));
  CHECK(read_all(folder / (step_folder_name(1) + "/MANIFEST")) == manifest);
  CHECK_FALSE(has_staging(folder.path()));
}
