// The folder of a run's checkpoints: names, the lease, and that no kill between two system calls
// leaves fewer checkpoints than one or half of one under its name.
#include <catch2/catch.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <set>

#include "io/checkpoint/checkpoint_folder.hpp"
#include "io/file.hpp"
#include "tests/io/system_calls.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;

namespace {

const std::vector<std::string> file_names{"shard-00000.h5", "shard-00001.h5", "index.h5",
                                          "MANIFEST"};

void write_files(const std::string& folder, const std::string& text) {
  for (const std::string& name : file_names) {
    OutputFile file(folder + "/" + name, OutputFile::Mode::create);
    file.write(text + name);
    file.sync();
    file.close();
  }
}

void save(const std::string& folder, index_t step, const std::string& text) {
  StagingFolder staging(folder, step, new_checkpoint_id());
  write_files(staging.path(), text);
  staging.commit();
  staging.confirm();
}

bool is_whole(const std::string& folder, const std::string& text) {
  return std::all_of(file_names.begin(), file_names.end(), [&](const std::string& name) {
    return read_all(folder + "/" + name) == text + name;
  });
}

std::vector<index_t> steps_in(const std::string& folder) {
  std::vector<index_t> steps;
  for (const CheckpointPlace& place : list_checkpoints(folder)) steps.push_back(place.step);
  return steps;
}

std::set<std::string> entries_of(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

// Runs `action` in processes that die before their first, second, ... change of the disk, calling
// `check` after each; until one lives to the end. Returns the number that died.
int die_at_each_call(const std::function<void()>& prepare, const std::function<void()>& action,
                     const std::function<void()>& check) {
  for (int k = 0;; ++k) {
    prepare();
    const pid_t child = ::fork();
    if (child == 0) {
      const SystemFault armed(Call::any, SystemFault::die, k);
      action();
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    INFO("died before call " << k);
    check();
    if (WEXITSTATUS(status) == 0) return k;
    REQUIRE(WEXITSTATUS(status) == SystemFault::exit_status);
  }
}

}  // namespace

TEST_CASE("checkpoints are those with exactly a step's name, newest first", "[checkpoint]") {
  const TemporaryFolder folder;
  CHECK(step_folder_name(200) == "step-000000200");
  CHECK(step_folder_name(12345678901) == "step-12345678901");
  CHECK(list_checkpoints(folder / "none").empty());
  for (const char* name : {"step-000000200", "step-000000000", "step-12345678901", "step-000001000",
                           "step-200", "step-0000000300", "step--00000001", "step-+00000001",
                           "step-00000040x", "step-000000500.tmp", "step-99999999999999999999",
                           "STEP-000000600", ".staging-7-ab", ".trash-8-cd", "step-", "x"})
    std::filesystem::create_directory(folder / name);
  CHECK(list_checkpoints(folder.path()) ==
        std::vector<CheckpointPlace>{{12345678901, folder / "step-12345678901"},
                                     {1000, folder / "step-000001000"},
                                     {200, folder / "step-000000200"},
                                     {0, folder / "step-000000000"}});
  write_all(folder / "x/file", "");
  const auto error = error_of([&] { list_checkpoints(folder / "x/file"); });
  REQUIRE(error.has_value());
  CHECK(error->code() == ExitCode::data);
  CHECK(says(error, "Not a directory"));
}

TEST_CASE("each save has an id of its own", "[checkpoint]") {
  std::set<std::string> ids;
  for (int i = 0; i < 100; ++i) {
    const std::string id = new_checkpoint_id();
    CHECK(id.size() == 32);
    CHECK(id.find_first_not_of("0123456789abcdef") == std::string::npos);
    ids.insert(id);
  }
  CHECK(ids.size() == 100);
}

TEST_CASE("a checkpoint appears by commit alone", "[checkpoint]") {
  const TemporaryFolder folder;
  {
    StagingFolder staging(folder.path(), 10, "ab");
    CHECK(staging.path() == StagingFolder::path_of(folder.path(), 10, "ab"));
    CHECK(says(error_of([&] { StagingFolder(folder.path(), 10, "ab"); }), "File exists"));
    write_files(staging.path(), "dropped ");
    CHECK(steps_in(folder.path()).empty());
  }
  CHECK(entries_of(folder.path()).empty());
  save(folder.path(), 10, "first ");
  CHECK(is_whole(folder / "step-000000010", "first "));
  CHECK(says(error_of([&] { save(folder.path(), 10, "second "); }), "is already there"));
  CHECK(is_whole(folder / "step-000000010", "first "));
  save(folder.path(), 11, "third ");
  CHECK(entries_of(folder.path()) == std::set<std::string>{"step-000000010", "step-000000011"});
}

TEST_CASE("a checkpoint that is set aside is no step any more, but whole", "[checkpoint]") {
  const TemporaryFolder folder;
  save(folder.path(), 1, "a ");
  save(folder.path(), 2, "b ");
  const std::string aside = set_aside(folder.path(), {2, folder / "step-000000002"});
  CHECK(steps_in(folder.path()) == std::vector<index_t>{1});
  CHECK(is_whole(aside, "b "));
  // Another one of the same step may come, and go the same way.
  save(folder.path(), 2, "c ");
  CHECK(set_aside(folder.path(), {2, folder / "step-000000002"}) != aside);
  sweep(folder.path());
  CHECK(is_whole(aside, "b "));
}

TEST_CASE("a checkpoint is removed, and leftovers are swept", "[checkpoint]") {
  const TemporaryFolder folder;
  save(folder.path(), 1, "a ");
  save(folder.path(), 2, "b ");
  remove_checkpoint(folder.path(), {1, folder / "step-000000001"});
  CHECK(entries_of(folder.path()) == std::set<std::string>{"step-000000002"});
  CHECK(says(error_of([&] {
               remove_checkpoint(folder.path(), {1, folder / "step-000000001"});
             }),
             "No such file"));
  make_folder(folder / ".staging-3-ab/inner");
  write_all(folder / ".staging-3-ab/inner/file", "x");
  std::filesystem::create_symlink(folder / "step-000000002", folder / ".staging-3-ab/link");
  make_folder(folder / ".trash-1-cd");
  write_all(folder / ".trash-4-ef", "a file");
  write_all(folder / "notes", "not ours");
  sweep(folder.path());
  CHECK(entries_of(folder.path()) == std::set<std::string>{"step-000000002", "notes"});
  CHECK(is_whole(folder / "step-000000002", "b "));
  sweep(folder / "none");
}

TEST_CASE("a lease refuses a second one and names its holder", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string checkpoints = folder / "run/checkpoints";
  {
    const Lease lease(checkpoints);
    CHECK(lease.warning().empty());
    const auto error = error_of([&] { Lease second(checkpoints); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::usage);
    CHECK(
        says(error, checkpoints + " is in use by process " + std::to_string(::getpid()) + " on "));
    CHECK(says(error, "since 2"));
    // The refused one has not disturbed the holder.
    CHECK(error_of([&] { Lease third(checkpoints); }).has_value());
  }
  // The file is still there; who left it does not matter.
  write_all(checkpoints + "/.lease", "process 1 on elsewhere since long ago, and a longer line\n");
  const Lease next(checkpoints);
  CHECK(read_all(checkpoints + "/.lease").find("elsewhere") == std::string::npos);
  sweep(checkpoints);
  CHECK(entries_of(checkpoints) == std::set<std::string>{".lease"});
}

TEST_CASE("a lease ends with its holder, however that ends", "[checkpoint]") {
  const TemporaryFolder folder;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const Lease lease(folder.path());
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(says(error_of([&] { Lease second(folder.path()); }),
             "in use by process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ::close(ready[0]);
  ::close(ready[1]);
  const Lease second(folder.path());
  CHECK(says(error_of([&] { Lease third(folder.path()); }), std::to_string(::getpid())));
}

TEST_CASE("a file system without locks is told, not refused", "[checkpoint]") {
  const TemporaryFolder folder;
  for (const int reason : {ENOLCK, EOPNOTSUPP}) {
    const SystemFault armed(Call::flock, reason);
    const Lease lease(folder.path());
    CHECK(lease.warning().find(folder.path() + " is not protected") == 0);
    CHECK(lease.warning().find(std::strerror(reason)) != std::string::npos);
  }
  const SystemFault armed(Call::flock, EINTR, 0, 3);
  const Lease lease(folder.path());
  CHECK(lease.warning().empty());
}

TEST_CASE("a lease that cannot write its name still holds", "[checkpoint]") {
  const TemporaryFolder folder;
  { const Lease makes_the_file(folder.path()); }
  const SystemFault armed(Call::open, ENOSPC, 1);
  const Lease lease(folder.path());
  CHECK(lease.warning().find("No space left on device") != std::string::npos);
  CHECK(says(error_of([&] { Lease second(folder.path()); }), "is in use by"));
}

TEST_CASE("a save that is killed leaves the old checkpoint or the new one", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string checkpoints = folder / "c";
  const auto prepare = [&] {
    std::filesystem::remove_all(checkpoints);
    make_folder(checkpoints);
    save(checkpoints, 1, "old ");
  };
  const auto check = [&] {
    REQUIRE(is_whole(checkpoints + "/step-000000001", "old "));
    for (const index_t step : steps_in(checkpoints))
      REQUIRE(is_whole(checkpoints + "/" + step_folder_name(step), step == 1 ? "old " : "new "));
    sweep(checkpoints);
    REQUIRE(entries_of(checkpoints).size() == steps_in(checkpoints).size());
  };
  const int died = die_at_each_call(
      prepare, [&] { save(checkpoints, 2, "new "); }, check);
  // mkdir; open and sync of four files; open and sync of staging; rename; open and sync of the
  // parent.
  CHECK(died == 1 + 4 * 2 + 2 + 1 + 2);
  CHECK(steps_in(checkpoints) == std::vector<index_t>{2, 1});
}

TEST_CASE("a removal that is killed leaves all of a checkpoint or none", "[checkpoint]") {
  const TemporaryFolder folder;
  const std::string checkpoints = folder / "c";
  const auto prepare = [&] {
    std::filesystem::remove_all(checkpoints);
    make_folder(checkpoints);
    save(checkpoints, 1, "old ");
    save(checkpoints, 2, "new ");
  };
  const auto check = [&] {
    for (const index_t step : steps_in(checkpoints))
      REQUIRE(is_whole(checkpoints + "/" + step_folder_name(step), step == 1 ? "old " : "new "));
    REQUIRE(std::filesystem::exists(checkpoints + "/step-000000002"));
    sweep(checkpoints);
    REQUIRE(entries_of(checkpoints).size() == steps_in(checkpoints).size());
  };
  const auto remove = [&] { remove_checkpoint(checkpoints, {1, checkpoints + "/step-000000001"}); };
  CHECK(die_at_each_call(prepare, remove, check) >= 1 + 2 + 4 + 1);
  CHECK(steps_in(checkpoints) == std::vector<index_t>{2});
  // Killed while it sweeps: the next sweep goes on.
  const auto leave = [&] {
    prepare();
    std::filesystem::rename(checkpoints + "/step-000000001", checkpoints + "/.trash-1-ab");
  };
  CHECK(die_at_each_call(
            leave, [&] { sweep(checkpoints); }, check) >= 4 + 1);
}

TEST_CASE("each fault of a save is an error that leaves the old checkpoint", "[checkpoint]") {
  const TemporaryFolder folder;
  save(folder.path(), 1, "old ");
  for (int k = 0;; ++k) {
    const std::optional<Error> error = [&] {
      const SystemFault armed(Call::any, k % 2 == 0 ? ENOSPC : EIO, k);
      return error_of([&] { save(folder.path(), 2, "new "); });
    }();
    CHECK(is_whole(folder / "step-000000001", "old "));
    if (!error) break;
    INFO("fault at call " << k);
    CHECK(error->code() == ExitCode::failed);
    CHECK(says(error, k % 2 == 0 ? "No space left" : "Input/output error"));
    // Only the last sync comes after the rename: it cannot be taken back, and what is there is
    // whole.
    if (std::filesystem::exists(folder / "step-000000002")) {
      CHECK(says(error, folder.path() + ":"));
      CHECK(is_whole(folder / "step-000000002", "new "));
      remove_checkpoint(folder.path(), {2, folder / "step-000000002"});
    }
    CHECK(entries_of(folder.path()) == std::set<std::string>{"step-000000001"});
  }
  CHECK(is_whole(folder / "step-000000002", "new "));
}

TEST_CASE("a fault of a removal is told, and a later sweep ends it", "[checkpoint]") {
  const TemporaryFolder folder;
  save(folder.path(), 1, "old ");
  const Call call = GENERATE(Call::rename, Call::fsync, Call::unlink, Call::rmdir);
  {
    const SystemFault armed(call, EIO);
    const auto error = error_of([&] {
      remove_checkpoint(folder.path(), {1, folder / "step-000000001"});
    });
    REQUIRE(error.has_value());
    CHECK(error->code() == ExitCode::failed);
    CHECK(says(error, "Input/output error"));
  }
  CHECK(std::filesystem::exists(folder / "step-000000001") == (call == Call::rename));
  sweep(folder.path());
  CHECK(entries_of(folder.path()).size() == (call == Call::rename ? 1 : 0));
}

TEST_CASE("free bytes", "[checkpoint]") {
  const TemporaryFolder folder;
  CHECK(free_bytes(folder.path()) > 0);
  CHECK(free_bytes(folder.path()) <= std::filesystem::space(folder.path()).capacity);
  const auto error = error_of([&] { free_bytes(folder / "none"); });
  REQUIRE(error.has_value());
  CHECK(says(error, "cannot find the free space of"));
}

TEST_CASE("a new folder and its new parents are synced", "[checkpoint]") {
  const TemporaryFolder folder;
  const SystemFault armed(Call::fsync, 0, 0, 0);
  make_folder(folder / "a/b/c");
  CHECK(armed.num_calls() == 3);
  make_folder(folder / "a/b/c");
  make_folder(folder / "a/b/");
  CHECK(armed.num_calls() == 3);
}
