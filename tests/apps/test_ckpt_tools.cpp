// `weft ckpt reshard | prune | export` without the command line: what is written, said, refused and
// left as it was; a file for other programs is read by another program.
#include <catch2/catch.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/ckpt_exchange_command.hpp"
#include "apps/ckpt_prune_command.hpp"
#include "apps/ckpt_reshard_command.hpp"
#include "io/checkpoint/verify.hpp"
#include "io/safetensors_exchange.hpp"
#include "tests/io/checkpoint/state_ranks.hpp"
#include "tests/io/system_calls.hpp"
#include "tests/io/temporary_folder.hpp"

using namespace weft;
using namespace weft::test;
using namespace weft::testing;
using Catch::Contains;
using nlohmann::json;

namespace fs = std::filesystem;

namespace {

const SomeModel& model() {
  static const SomeModel some{{"block.0.up", cut({8, 6}, 0)}, {"norm", whole({5})}};
  return some;
}

struct Said {
  int exit_code = 0;
  std::string text;
  json object;
};

template <class Options>
Said run(int (*command)(const Options&, std::ostream&, std::ostream&), Options options) {
  options.json = true;
  std::ostringstream text, out;
  Said said;
  said.exit_code = command(options, text, out);
  said.text = text.str();
  CHECK(out.str().find('\n') == out.str().size() - 1);
  said.object = json::parse(out.str());
  return said;
}

template <class Options>
std::string refusal(int (*command)(const Options&, std::ostream&, std::ostream&),
                    const Options& options, ExitCode code) {
  std::ostringstream text, out;
  const auto error = error_of([&] { command(options, text, out); });
  CHECK(out.str().empty());
  if (!error) return "no error";
  CHECK(error->code() == code);
  return error->what();
}

// The steps of a folder, newest first: "8 6 4".
std::string steps_in(const std::string& folder) {
  std::string steps;
  for (const CheckpointPlace& place : list_checkpoints(folder))
    steps += (steps.empty() ? "" : " ") + std::to_string(place.step);
  return steps;
}

void alter_shard(const std::string& folder, index_t step) {
  const std::string path = folder + "/" + step_folder_name(step) + "/shard-00000.h5";
  std::string bytes = read_all(path);
  bytes.back() ^= 1;
  write_all(path, bytes);
}

struct Run {
  TemporaryFolder folder;
  std::string checkpoints = folder / "checkpoints";
  explicit Run(const std::vector<index_t>& steps) {
    fs::create_directory(checkpoints);
    for (const index_t step : steps) save_state(model(), {}, checkpoints, step, 1);
  }
};

std::string read_by_python(const std::string& path) {
  const std::string command = "python3 '" WEFT_SAFETENSORS_READER "' '" + path + "' 2>&1";
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string text;
  std::array<char, 4096> bytes{};
  for (std::size_t n; (n = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0;)
    text.append(bytes.data(), n);
  INFO(text);
  REQUIRE(::pclose(pipe) == 0);
  return text;
}

// What it is to read: every element from what the test knows of it.
std::string expected_text(const std::string& name, const std::string& tensor,
                          const std::string& kind, index_t rows, index_t cols, std::uint64_t salt) {
  std::ostringstream text;
  text << name << " ";
  if (rows > 1) text << rows << "x";
  text << cols << "\n";
  for (index_t row = 0; row < rows; ++row) {
    for (index_t col = 0; col < cols; ++col) {
      std::array<char, 16> line{};
      std::snprintf(line.data(), line.size(), "%08x\n", bits_of(tensor, kind, {0, row, col}, salt));
      text << line.data();
    }
  }
  return text.str();
}

}  // namespace

TEST_CASE("ckpt reshard by a number of shards", "[ckpt_tools]") {
  const TemporaryFolder folder;
  const std::string path = save_state(model(), {}, folder.path(), 7, 3);
  const std::string to = folder / "three";
  const Said said = run(ckpt_reshard, CkptReshardOptions{.path = path, .to = to, .num_shards = 3});
  CHECK(said.exit_code == 0);
  const Checkpoint made = open_checkpoint(to);
  CHECK(said.object["path"] == to);
  CHECK(said.object["from"] == path);
  CHECK(said.object["step"] == 7);
  CHECK(said.object["shards"] == 3);
  CHECK(said.object["id"] == made.manifest.id);
  CHECK(said.object["state_fingerprint"] == open_checkpoint(path).manifest.state_fingerprint);
  CHECK(said.object["layout"] == made.manifest.layout);
  CHECK_THAT(said.text, Contains(to + ": step 7, 3 shards (3 even shards)"));

  CHECK_THAT(refusal(ckpt_reshard, {.path = path, .to = to, .num_shards = 3}, ExitCode::usage),
             Contains(to) && Contains("does not exist yet"));
  for (const index_t n : {0, -1, 65537})
    CHECK_THAT(refusal(ckpt_reshard, {.path = path, .to = to, .num_shards = n}, ExitCode::usage),
               Contains("--ranks: expected 1 to 65536, found " + std::to_string(n)));
  CHECK_THAT(refusal(ckpt_reshard, {.path = path, .to = to}, ExitCode::usage),
             Contains("either --ranks N"));
  CHECK_THAT(
      refusal(ckpt_reshard, {.path = path, .to = to, .num_shards = 2, .overrides = {"layout.tp=2"}},
              ExitCode::usage),
      Contains("either --ranks N"));
  CHECK_THAT(
      refusal(ckpt_reshard, {.path = folder / "none", .to = to, .num_shards = 2}, ExitCode::data),
      Contains(folder / "none"));
}

TEST_CASE("ckpt prune keeps the last that verify", "[ckpt_tools]") {
  Run some({1, 2, 3, 4, 5, 6});
  const CkptPruneOptions options{.path = some.folder.path(), .keep = 2, .dry_run = true};
  const Said dry = run(ckpt_prune, options);
  CHECK(dry.exit_code == 0);
  CHECK(dry.object["dry_run"] == true);
  CHECK(dry.object["removed"] == json{4, 3, 2, 1});
  CHECK_THAT(dry.text, Contains("step 4: would be removed") && Contains("step 5: stays, sound"));
  CHECK(steps_in(some.checkpoints) == "6 5 4 3 2 1");
  CHECK(!fs::exists(some.checkpoints + "/.lease"));

  fs::create_directory(some.checkpoints + "/.staging-9-x");
  const Said done = run(ckpt_prune, CkptPruneOptions{.path = some.checkpoints, .keep = 2});
  CHECK(done.object["removed"] == dry.object["removed"]);
  CHECK(done.object["kept"] ==
        json{{{"step", 6}, {"because", "sound"}}, {{"step", 5}, {"because", "sound"}}});
  CHECK(steps_in(some.checkpoints) == "6 5");
  CHECK(!fs::exists(some.checkpoints + "/.staging-9-x"));
  for (const index_t step : {5, 6})
    CHECK(verify_checkpoint(open_checkpoint(some.checkpoints + "/" + step_folder_name(step)))
              .num_faults == 0);
}

TEST_CASE("ckpt prune does not count a damaged one", "[ckpt_tools]") {
  Run some({1, 2, 3, 4, 5});
  alter_shard(some.checkpoints, 5);
  alter_shard(some.checkpoints, 3);
  const Said said = run(ckpt_prune, CkptPruneOptions{.path = some.folder.path(), .keep = 2});
  CHECK(said.exit_code == 5);
  CHECK(steps_in(some.checkpoints) == "5 4 3 2");
  CHECK(said.object["removed"] == json{1});
  CHECK_THAT(said.text, Contains("step 5: stays, DAMAGED: ") && Contains("shard-00000.h5"));
  CHECK(said.object["kept"][0]["because"] == "damaged");
  CHECK_THAT(said.object["kept"][0]["fault"].get<std::string>(), Contains("shard-00000.h5"));
  // With fewer sound ones than asked for everything stays.
  const Said none = run(ckpt_prune, CkptPruneOptions{.path = some.folder.path(), .keep = 3});
  CHECK(none.exit_code == 5);
  CHECK(none.object["removed"].empty());
  CHECK_THAT(none.text, Contains("has 2 sound checkpoints and 3 are to stay"));
  CHECK(steps_in(some.checkpoints) == "5 4 3 2");
}

TEST_CASE("ckpt prune leaves every M-th and the pinned", "[ckpt_tools]") {
  Run some({2, 4, 5, 6, 8, 10, 11});
  const Said said =
      run(ckpt_prune,
          CkptPruneOptions{.path = some.folder.path(), .keep = 1, .every = 4, .pins = {5, 2}});
  CHECK(said.exit_code == 0);
  CHECK(steps_in(some.checkpoints) == "11 8 5 4 2");
  CHECK(said.object["removed"] == json{10, 6});
  CHECK_THAT(said.text,
             Contains("step 8: stays, one of every 4") && Contains("step 5: stays, pinned"));
  CHECK(read_all(some.checkpoints + "/PINS") == "5\n2\n");

  // A pin holds from now on: for another prune, and for the retention of the run.
  write_all(some.checkpoints + "/PINS", "# best so far\n 5 # of these\n\n4");
  run(ckpt_prune, CkptPruneOptions{.path = some.folder.path(), .keep = 1});
  CHECK(steps_in(some.checkpoints) == "11 5 4");
  retire_older(some.checkpoints, 11, {.keep = 1});
  CHECK(steps_in(some.checkpoints) == "11 5 4");
  const Said again =
      run(ckpt_prune, CkptPruneOptions{.path = some.folder.path(), .keep = 1, .pins = {4, 11}});
  CHECK(again.exit_code == 0);
  CHECK(read_all(some.checkpoints + "/PINS") == "# best so far\n 5 # of these\n\n4\n11\n");
  write_all(some.checkpoints + "/PINS", "5\n");
  retire_older(some.checkpoints, 11, {.keep = 1});
  CHECK(steps_in(some.checkpoints) == "11 5");

  write_all(some.checkpoints + "/PINS", "4\nfive\n");
  CHECK_THAT(refusal(ckpt_prune, {.path = some.folder.path(), .keep = 1}, ExitCode::data),
             Contains("PINS:2: expected the number of a step, found \"five\""));
  CHECK(says(error_of([&] { retire_older(some.checkpoints, 11, {.keep = 1}); }), "PINS:2"));
  CHECK(steps_in(some.checkpoints) == "11 5");
}

TEST_CASE("ckpt prune leaves the best that the run's plan keeps", "[ckpt_tools]") {
  Run some({2, 4, 5, 6, 8, 10, 11});
  const std::string plan =
      "[model]\nkind = \"mlp\"\nlayers = 2\nhidden = 48\n[batch]\nglobal = 128\nmicro = 16\n"
      "[optimizer]\nlr = 1e-3\n[run]\nsteps = 20\n[checkpoint]\n";
  std::string log;
  for (const auto& [step, accuracy] :
       std::vector<std::pair<int, double>>{{2, 0.5}, {4, 0.9}, {6, 0.7}, {7, 1.0}, {8, 0.8}})
    log += json{{"step", step}, {"split", "validation"}, {"accuracy", accuracy}}.dump() + "\n";
  write_all(some.folder / "eval.jsonl", log);
  const auto prune = [&](CkptPruneOptions options) {
    options.path = some.folder.path();
    return run(ckpt_prune, options);
  };
  // Nothing goes while it cannot be told what is to stay.
  write_all(some.folder / "plan.toml", "[checkpoint]\nkeep_bost = 1\n");
  CHECK_THAT(refusal(ckpt_prune, {.path = some.folder.path(), .keep = 1}, ExitCode::usage),
             Contains("plan.toml:2:1: checkpoint.keep_bost: unknown key"));
  CHECK(steps_in(some.checkpoints) == "11 10 8 6 5 4 2");

  // 4 was best, but is damaged: that is said, and 8 stays as well.
  alter_shard(some.checkpoints, 4);
  write_all(some.folder / "plan.toml", plan + "keep_best = 1\nkeep_every = 5\n");
  const Said said = prune({.keep = 1});
  CHECK(said.exit_code == 5);
  CHECK(said.object["removed"] == json{6, 2});
  CHECK_THAT(said.text, Contains("step 8: stays, best by its evaluation (the plan's keep_best)") &&
                            Contains("step 4: stays, DAMAGED: ") &&
                            Contains("step 5: stays, one of every 5 (the plan's keep_every)"));
  CHECK(said.object["kept"][2]["because"] == "best");
  CHECK(steps_in(some.checkpoints) == "11 10 8 5 4");
  fs::remove_all(some.checkpoints + "/" + step_folder_name(4));
  // Another M is the user's word.
  const Said other = prune({.keep = 1, .every = 11});
  CHECK(other.exit_code == 0);
  CHECK(steps_in(some.checkpoints) == "11 8");
  write_all(some.folder / "plan.toml", plan);
  CHECK(run(ckpt_prune, CkptPruneOptions{.path = some.checkpoints, .keep = 1}).exit_code == 0);
  CHECK(steps_in(some.checkpoints) == "11");
}

TEST_CASE("ckpt prune refuses what cannot be meant", "[ckpt_tools]") {
  Run some({1, 2, 3});
  const std::string path = some.folder.path();
  CHECK_THAT(refusal(ckpt_prune, {.path = path, .keep = 0}, ExitCode::usage),
             Contains("--keep: expected 1 or more, found 0"));
  CHECK_THAT(refusal(ckpt_prune, {.path = path, .keep = 1, .every = 0}, ExitCode::usage),
             Contains("--every: expected 1 or more"));
  CHECK_THAT(refusal(ckpt_prune, {.path = path, .keep = 1, .pins = {2, 7}}, ExitCode::usage),
             Contains("--pin 7") && Contains("it has 3 2 1"));
  CHECK_THAT(refusal(ckpt_prune, {.path = path + "/none", .keep = 1}, ExitCode::data),
             Contains("found nothing"));
  // What is under way, or not ours, is still there.
  const std::string staging = some.checkpoints + "/.staging-9-x", none = path + "/none";
  fs::create_directory(staging);
  fs::create_directory(none);
  fs::create_directory(none + "/.trash-pictures");
  CHECK_THAT(refusal(ckpt_prune, {.path = path, .keep = 1, .pins = {999}}, ExitCode::usage),
             Contains("--pin 999"));
  CHECK_THAT(refusal(ckpt_prune, {.path = none, .keep = 1}, ExitCode::data),
             Contains(none + ": expected a run folder"));
  CHECK(fs::is_directory(staging));
  CHECK(fs::is_directory(none + "/.trash-pictures"));
  for (const std::string& folder : {none, some.checkpoints}) CHECK(!fs::exists(folder + "/.lease"));
  const Lease lease(some.checkpoints);
  CHECK_THAT(refusal(ckpt_prune, {.path = path, .keep = 1}, ExitCode::usage),
             Contains("is in use by") && !Contains("--run"));
  CHECK(run(ckpt_prune, CkptPruneOptions{.path = path, .keep = 1, .dry_run = true}).exit_code == 0);
  CHECK(!fs::exists(some.checkpoints + "/PINS"));
  CHECK(steps_in(some.checkpoints) == "3 2 1");
}

TEST_CASE("ckpt prune removes nothing where no lock keeps a run away", "[ckpt_tools]") {
  Run some({1, 2});
  fs::create_directory(some.checkpoints + "/.staging-9-x");
  const SystemFault no_locks(Call::flock, ENOLCK);
  CHECK_THAT(refusal(ckpt_prune, {.path = some.folder.path(), .keep = 1}, ExitCode::failed),
             Contains("has no locks") && Contains("end all runs"));
  CHECK(steps_in(some.checkpoints) == "2 1");
  CHECK(fs::is_directory(some.checkpoints + "/.staging-9-x"));
}

TEST_CASE("ckpt export is read by another program", "[ckpt_tools]") {
  const TemporaryFolder folder;
  const StateLayout two{.shards = 2, .tp = 2};
  const std::string path = save_state(model(), two, folder.path(), 3, 7);
  const CkptExportOptions options{
      .path = path, .format = "safetensors", .to = folder / "a.safetensors"};
  const Said said = run(ckpt_export, options);
  CHECK(said.exit_code == 0);
  CHECK(said.object["tensors"] == 2);
  CHECK(said.object["bytes"] == fs::file_size(options.to));
  CHECK(read_by_python(options.to) == expected_text("block.0.up", "block.0.up", "value", 8, 6, 7) +
                                          expected_text("norm", "norm", "value", 1, 5, 7));
  // Equal states are equal files, whoever wrote them.
  const std::string other = save_state(model(), {.dp = 3}, folder.path(), 4, 7);
  CkptExportOptions again{.path = other, .format = "safetensors", .to = folder / "b.safetensors"};
  run(ckpt_export, again);
  CHECK(read_all(again.to) == read_all(options.to));

  write_all(folder / "t.toml", "[names]\n\"block.*.up\" = \"z.*.up\"\n");
  again = {.path = path,
           .format = "safetensors",
           .to = folder / "c.safetensors",
           .names = folder / "t.toml",
           .with_optimizer = true};
  CHECK(run(ckpt_export, again).object["tensors"] == 6);
  std::string expected = expected_text("norm", "norm", "value", 1, 5, 7);
  for (const std::string kind : {"exp_avg", "exp_avg_sq"})
    expected += expected_text("optimizer." + kind + ".norm", "norm", kind, 1, 5, 7) +
                expected_text("optimizer." + kind + ".z.0.up", "block.0.up", kind, 8, 6, 7);
  CHECK(read_by_python(again.to) ==
        expected + expected_text("z.0.up", "block.0.up", "value", 8, 6, 7));
}

TEST_CASE("ckpt export makes no file of what is damaged, nor over another", "[ckpt_tools]") {
  const TemporaryFolder folder, out;
  const std::string path = save_state(model(), {}, folder.path(), 3, 7);
  CkptExportOptions options{.path = path, .format = "safetensors", .to = out / "f"};
  write_all(out / "f", "mine");
  CHECK_THAT(refusal(ckpt_export, options, ExitCode::usage), Contains("does not exist yet"));
  CHECK(read_all(out / "f") == "mine");
  fs::remove(out / "f");
  options.format = "pickle";
  CHECK_THAT(refusal(ckpt_export, options, ExitCode::usage), Contains("expected safetensors"));
  options.format = "safetensors";

  const Checkpoint checkpoint = open_checkpoint(path);
  for (const PieceRecord& piece : checkpoint.index.pieces) {
    if (checkpoint.tensor_of(piece).kind != "value") continue;
    const std::string shard = path + "/" + checkpoint.file_of(piece).name;
    const std::string before = read_all(shard);
    std::string bytes = before;
    bytes.at(checkpoint.index.blocks[static_cast<std::size_t>(piece.first_block)].offset) ^= 1;
    write_all(shard, bytes);
    CHECK_THAT(refusal(ckpt_export, options, ExitCode::data),
               Contains(shard) && Contains(checkpoint.tensor_of(piece).name));
    CHECK(fs::is_empty(out.path()));
    write_all(shard, before);
  }
  CHECK(run(ckpt_export, options).exit_code == 0);
}

TEST_CASE("ckpt export leaves a file that was made meanwhile", "[ckpt_tools]") {
  const TemporaryFolder folder, out;
  const Checkpoint checkpoint = open_checkpoint(save_state(model(), {}, folder.path(), 3, 7));
  const std::string to = out / "f";
  const auto export_over = [&](const std::string& mine) {
    return error_of([&] {
      export_safetensors(checkpoint, to, {}, false,
                         [&](std::uint64_t, std::uint64_t) { write_all(to, mine); });
    });
  };
  const auto num_files = [&] { return std::distance(fs::directory_iterator(out.path()), {}); };
  // By the rename that replaces nothing, and by a link where there is no such rename.
  for (const int count : {0, 1}) {
    {
      const SystemFault no_such_rename(Call::rename, EINVAL, 0, count);
      const auto error = export_over("mine");
      REQUIRE(says(error, to + ": something was made there meanwhile"));
      CHECK(error->code() == ExitCode::usage);
    }
    CHECK(read_all(to) == "mine");
    CHECK(num_files() == 1);
    fs::remove(to);
    {
      const SystemFault no_such_rename(Call::rename, EINVAL, 0, count);
      export_safetensors(checkpoint, to, {}, false);
    }
    CHECK(read_by_python(to) == expected_text("block.0.up", "block.0.up", "value", 8, 6, 7) +
                                    expected_text("norm", "norm", "value", 1, 5, 7));
    CHECK(num_files() == 1);
    fs::remove(to);
  }
}

TEST_CASE("what is in place but not confirmed by the disk is said to be so", "[ckpt_tools]") {
  const TemporaryFolder folder, out;
  const std::string path = save_state(model(), {}, folder.path(), 3, 7);
  const CkptExportOptions to_file{.path = path, .format = "safetensors", .to = out / "f"};
  const CkptReshardOptions to_shards{.path = path, .to = out / "c", .num_shards = 2};
  const auto check = [&](const auto& command, const auto& options) {
    int num_syncs = 0;
    {
      const SystemFault count(Call::fsync, EIO, 1000);
      run(command, options);
      num_syncs = count.num_calls();
    }
    fs::remove_all(options.to);
    // The folder that it is in is the last to be synced.
    const SystemFault last(Call::fsync, EIO, num_syncs - 1);
    CHECK_THAT(refusal(command, options, ExitCode::failed),
               Contains(options.to + " is in place") && Contains("Input/output error"));
    CHECK(fs::exists(options.to));
  };
  check(ckpt_export, to_file);
  check(ckpt_reshard, to_shards);
  CHECK(verify_checkpoint(open_checkpoint(to_shards.to)).num_faults == 0);
}
