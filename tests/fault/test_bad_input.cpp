// What a user gets for a mistake: one message from one rank that says what was expected, what was
// found and what to change; the right exit code; every rank gone; nothing overwritten.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/weft_process.hpp"

namespace {

namespace fs = std::filesystem;
using weft::test::ProcessResult;

const std::string plan = WEFT_PLANS "/cifar10-mlp.toml";

std::string data() {
  const std::string folder = weft::test::test_folder() + "/small-cifar10";
  if (!fs::exists(folder + "/test_batch.bin")) {
    REQUIRE(weft::test::run_weft("data make cifar10 " + folder + " --rows 200").exit_code == 0);
  }
  return folder;
}

std::string small_run() {
  return " --set 'task.split={train=900,validation=100,seed=7}' --set run.steps=3 --run " +
         weft::test::fresh_folder("run") + "/it ";
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Four ranks with `arguments`: `code`, one message that has all of `parts`, soon.
void require_message(const std::string& arguments, int code, const std::vector<std::string>& parts,
                     const std::string& command = "train ") {
  const ProcessResult result = weft::test::run_weft_ranks(4, command + arguments);
  INFO(arguments << "\n" << result.text);
  CHECK(result.exit_code == code);
  CHECK(count(result.text, "weft: ") == 1);
  for (const std::string& part : parts) {
    INFO("expected: " << part);
    CHECK(result.text.find(part) != std::string::npos);
  }
  CHECK(result.seconds < 20.0);  // "within seconds", on a machine with fewer cores than ranks
}

const std::string four_ranks = " --set layout.tp=2 --set layout.dp=2 ";

}  // namespace

TEST_CASE("a misspelt command or option") {
  require_message("", 2, {"weft: unknown command tarin; did you mean train?", "--help"},
                  "tarin " + plan);
  require_message("", 2, {"weft: data: unknown command chek; did you mean check?"}, "data chek x");
  require_message("", 2, {"weft: ckpt: expected a command, one of ls, inspect, verify, diff"},
                  "ckpt");
  require_message("", 2, {"weft: expected a command, one of check, train"}, "");
  require_message(plan + " --runn x", 2,
                  {"weft: train: unknown option --runn; did you mean --run?"});
  require_message("", 2, {"weft: train: PLAN is required"});
}

TEST_CASE("no data folder") {
  require_message(plan + four_ranks + small_run() + " --data /nonexistent/cifar10", 5,
                  {"/nonexistent/cifar10", "weft data make cifar10"});
}

TEST_CASE("a data file that is missing, cut short in a row, or cut at a row's end") {
  const std::string folder = weft::test::fresh_folder("damaged");
  fs::copy(data(), folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  const std::string arguments = plan + four_ranks + " --data " + folder;

  fs::resize_file(folder + "/data_batch_3.bin", 200 * 3073 - 5);
  require_message(arguments + small_run(), 5, {"data_batch_3.bin", "3073"});
  fs::resize_file(folder + "/data_batch_3.bin", 199 * 3073);
  require_message(arguments + small_run(), 5, {"data_batch_3.bin", "199", "200"});
  fs::remove(folder + "/data_batch_3.bin");
  require_message(arguments + small_run(), 5, {"data_batch_3.bin"});
}

TEST_CASE("a label that is no class, met while training") {
  const std::string folder = weft::test::fresh_folder("damaged");
  fs::copy(data(), folder, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  for (int file = 1; file <= 5; ++file) {
    std::fstream rows(folder + "/data_batch_" + std::to_string(file) + ".bin",
                      std::ios::in | std::ios::out | std::ios::binary);
    for (int row = 0; row < 200; ++row) {
      rows.seekp(row * 3073);
      rows.put('\x63');
    }
  }
  const ProcessResult result = weft::test::run_weft_ranks(
      4, "train " + plan + four_ranks + small_run() + " --data " + folder);
  INFO(result.text);
  CHECK(result.exit_code == 5);
  CHECK(result.text.find("99") != std::string::npos);
  CHECK(result.seconds < 20.0);
  // Found before, too, and not one by one.
  CHECK(weft::test::run_weft("data check " + data()).exit_code == 0);
  const ProcessResult check = weft::test::run_weft("data check --json " + folder);
  CHECK(check.exit_code == 5);
  CHECK(check.json().at("damaged_rows").size() == 1000);
}

TEST_CASE("a misspelt key, and two faults at once") {
  const std::string folder = weft::test::fresh_folder("plans");
  std::ofstream(folder + "/wrong.toml") << std::ifstream(plan).rdbuf() << "\n[laiout]\ntp = 2\n";
  require_message(folder + "/wrong.toml" + small_run() + " --data " + data(), 2,
                  {"laiout", "layout", "wrong.toml:"});
  require_message(plan + small_run() + " --set batch.globl=64 --set model.hiden=3 --data " + data(),
                  2, {"batch.globl", "batch.global", "model.hiden", "model.hidden"});
}

TEST_CASE("a batch that does not divide, a width that does not fit, a key of a later version") {
  const std::string end = four_ranks + small_run() + " --data " + data();
  require_message(plan + end + " --set batch.global=100", 2, {"batch.global", "100", "128"});
  require_message(plan + end + " --set numerics.shards=5", 2, {"numerics.shards", "5", "768"});
  require_message(plan + end + " --set layout.recompute=true", 2,
                  {"layout.recompute", "not in this version"});
  require_message(plan + end + " --set layout.zero=2", 2, {"layout.zero", "not in this version"});
}

TEST_CASE("stages that the model does not have, and a list of them that does not add up") {
  const std::string end = small_run() + " --data " + data();
  require_message(plan + end + " --set layout.pp=4", 2, {"layout.pp", "model.layers 2", "found 4"});
  const std::string stages = " --set layout.dp=2 --set layout.pp=2 --set layout.stages=";
  require_message(plan + end + stages + "'[1, 2]'", 2,
                  {"layout.stages", "[1, 2]", "the sum 3", "= 2", "[1, 1]"});
  require_message(plan + end + stages + "'[2]'", 2, {"layout.stages", "1 number", "2 numbers"});
  require_message(plan + end + stages + "evn", 2, {"layout.stages", "evn", "even"});
}

TEST_CASE("heads against shards and width, keys of another kind of model") {
  const std::string vit = WEFT_PLANS "/cifar10-vit.toml";
  const std::string end = four_ranks + small_run() + " --data " + data();
  require_message(vit + end + " --set model.heads=6", 2,
                  {"numerics.shards", "1, 2, 3 or 6", "found 4", "model.heads = 4 or 8"});
  require_message(vit + end + " --set model.heads=5", 2,
                  {"model.heads", "divisor of model.hidden 192", "found 5"});
  require_message(vit + end + " --set model.patch=5", 2, {"model.patch", "32", "4 or 8"});
  require_message(plan + end + " --set model.heads=8", 2, {"model.heads", "\"mlp\"", "remove it"});
}

TEST_CASE("more ranks than the plan can use, and another number than the layout's product") {
  const std::string end = small_run() + " --data " + data();
  require_message(plan + end + " --set layout.tp=8", 2, {"layout.tp", "8", "4"});
  require_message(plan + end, 2, {"4 ranks", "tp"});
  require_message(plan + end + " --set layout.tp=2", 2, {"4 ranks"});
}

// `command` on four ranks, each after the shell's line `before` that may ask for its number.
ProcessResult run_unlike_ranks(const std::string& before, const std::string& command) {
  return weft::test::run_shell(WEFT_LAUNCHER " 4 sh -c '" + before + "; exec " WEFT_PROGRAM " " +
                               command + " \"$@\"' sh");
}

void require_one(const ProcessResult& result, int code, const std::vector<std::string>& parts) {
  INFO(result.text);
  CHECK(result.exit_code == code);
  CHECK(count(result.text, "weft: ") == 1);
  CHECK(count(result.text, "ends the run") == 0);
  for (const std::string& part : parts) {
    INFO("expected: " << part);
    CHECK(result.text.find(part) != std::string::npos);
  }
  CHECK(result.seconds < 20.0);
}

TEST_CASE("plans that differ between ranks") {
  const std::string run = weft::test::fresh_folder("run") + "/it";
  const std::string begin = "train " + plan + four_ranks + " --run " + run + " --data " + data();
  require_one(run_unlike_ranks("test $OMPI_COMM_WORLD_RANK = 2 && set -- --set optimizer.lr=0.25",
                               begin + " --set optimizer.lr=0.5"),
              2,
              {"the plan differs between ranks", "rank 0 has \"[optimizer] lr = 0.5\"",
               "rank 2 has \"[optimizer] lr = 0.25\"", "same plan file"});
  // A key that only one of them has.
  require_one(
      run_unlike_ranks("test $OMPI_COMM_WORLD_RANK = 3 && set -- --set task.path=/d", begin), 2,
      {"the plan differs between ranks", "rank 3 has \"[task] path = \"/d\"\""});
  CHECK_FALSE(fs::exists(run));
}

TEST_CASE("a transport that does not exist, or cannot serve so many ranks") {
  const std::string end = four_ranks + small_run() + " --data " + data() + " --set comm.transport=";
  require_message(plan + end + "carrier_pigeon", 2,
                  {"comm.transport", "carrier_pigeon", "\"auto\"", "\"ucx\"", "\"mpi\""});
  require_message(plan + end + "local", 2, {"'local'", "one rank", "4 were started", "\"auto\""});
#ifndef WEFT_WITH_UCX
  require_message(plan + end + "ucx", 2, {"does not have", "-DWEFT_UCX=ON", "\"auto\""});
#endif
}

#ifdef WEFT_WITH_UCX
TEST_CASE("UCX without an interface: the error of the rank that has none, or another transport") {
  const std::string begin =
      "train " + plan + four_ranks + small_run() + " --data " + data() + " --set comm.transport=";
  const std::string all = "export UCX_TLS=doesnotexist";
  require_one(run_unlike_ranks(all, begin + "ucx"), 2,
              {"no usable interface on rank 0", "UCX_TLS (now 'doesnotexist')",
               "UCX_NET_DEVICES (not set)", "comm.transport = \"mpi\""});
  require_one(run_unlike_ranks("test $OMPI_COMM_WORLD_RANK = 1 && " + all, begin + "ucx"), 2,
              {"no usable interface on rank 1", "UCX_TLS (now 'doesnotexist')"});
  const ProcessResult automatic = run_unlike_ranks(all, begin + "auto");
  INFO(automatic.text);
  CHECK(automatic.exit_code == 0);
  CHECK(count(automatic.text, "comm.transport \"auto\" takes \"mpi\": UCX has no usable") == 1);
}

TEST_CASE("a layout that fails leaves the figures of those before it") {
  const ProcessResult result =
      run_unlike_ranks("export UCX_TLS=doesnotexist",
                       "layouts " + plan +
                           " --set task.split.train=900 --set task.split.validation=100 --json "
                           "--data " +
                           data() + " --steps 4 --grid \"dp=2 transport=mpi,ucx,auto\"");
  require_one(result, 2, {"median ms", "tp=1 dp=2 pp=1 mpi", "UCX has no usable interface"});
  const auto json = result.json();
  REQUIRE(json["rows"].size() == 1);
  CHECK(json["rows"][0]["layout"]["transport"] == "mpi");
  CHECK(json["rows"][0]["step_ms"]["median"] > 0.0);
  CHECK(json["error"]["exit_code"] == 2);
  CHECK(json["error"]["message"].get<std::string>().find("dp=2 pp=1 ucx: ") != std::string::npos);
}
#endif

TEST_CASE("a run folder that holds a run is left as it is") {
  const std::string run = weft::test::fresh_folder("kept") + "/it";
  const std::string arguments =
      "train " + plan + " --set 'task.split={train=900,validation=100,seed=7}' --set run.steps=3" +
      " --data " + data() + " --run " + run;
  REQUIRE(weft::test::run_weft(arguments).exit_code == 0);
  const auto written = fs::last_write_time(run + "/summary.json");
  const ProcessResult again = weft::test::run_weft(arguments);
  INFO(again.text);
  CHECK(again.exit_code == 2);
  CHECK(again.text.find(run) != std::string::npos);
  CHECK(fs::last_write_time(run + "/summary.json") == written);
}

TEST_CASE("a slip in how to resume is told before anything is touched") {
  const std::string arguments = plan + four_ranks + " --data " + data() + small_run();
  const std::string run = weft::test::test_folder() + "/run/it";
  require_message(arguments + "--resume soon", 2, {"--resume", "auto", "soon"});
  require_message(arguments + "--resume -3", 2, {"--resume", "auto", "-3"});
  require_message(arguments + "--strict", 2, {"--strict", "--resume auto"});
  CHECK_FALSE(fs::exists(run));
  require_message(plan + four_ranks + " --data " + data() + " --resume auto" +
                      " --set 'task.split={train=900,validation=100,seed=7}' --set run.steps=3",
                  2, {"--resume", "--run"});
}

TEST_CASE("a folder of checkpoints that another run holds is left alone") {
  const std::string checkpoints = weft::test::test_folder() + "/run/it/checkpoints";
  const std::string arguments = plan + four_ranks + " --data " + data() + small_run();
  fs::create_directories(checkpoints);
  const int lease = open((checkpoints + "/.lease").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  REQUIRE(lease >= 0);
  REQUIRE(flock(lease, LOCK_EX | LOCK_NB) == 0);
  fs::create_directories(checkpoints + "/.staging-3-ab");
  require_message(arguments + "--resume auto", 2, {checkpoints, "in use by"});
  // A run that saves none would still rename and remove.
  require_message(arguments + "--resume auto --set checkpoint.at_end=false", 2,
                  {checkpoints, "in use by"});
  CHECK(fs::exists(checkpoints + "/.staging-3-ab"));
  close(lease);
}

TEST_CASE("a split that the set is too small for") {
  require_message(plan + four_ranks + " --set run.steps=3 --run " +
                      weft::test::fresh_folder("run") + "/it --data " + data(),
                  2, {"45000", "1000"});
}

TEST_CASE("a loss that is not finite stops before the update, on all ranks") {
  require_message(plan + four_ranks + small_run() +
                      " --set optimizer.lr=1e30 --set optimizer.clip_norm=0 --set "
                      "'optimizer.schedule={kind=\"constant\"}' --data " +
                      data(),
                  1, {"step", "optimizer.lr"});
}

TEST_CASE("a grid of layouts with a slip, or of which none can run") {
  const std::string end =
      plan + " --set 'task.split={train=900,validation=100,seed=7}' --data " + data() + " --grid ";
  const auto require_grid = [&](const std::string& grid, int code,
                                const std::vector<std::string>& parts) {
    require_message(end + grid, code, parts, "layouts ");
  };
  require_grid("'tp=1,2 zreo=1'", 2, {"--grid", "zreo", "did you mean zero?"});
  require_grid("'tp=1,two'", 2, {"--grid", "tp", "two", "an integer"});
  require_grid("'schedule=gpip'", 2, {"gpip", "gpipe"});
  require_grid("'pp=1,2 stages=[1,1'", 2, {"bracket", "[1,1"});
  require_grid("'tp=8 dp=4,8'", 2, {"no layout", "tp=8 dp=4 pp=1", "layout.tp: ", "tp=8 dp=8"});
  require_grid("'tp=4 dp=4'", 2, {"no layout", "needs 16 ranks; 4 were started"});
  require_grid("'tp=1,2' --warmup 5 --steps 5", 2, {"--warmup", "5 steps"});
  require_grid("'tp=1,2' --repeat 0", 2, {"--repeat", "found 0"});
  require_grid("'tp=1,2' --steps 0", 2, {"run.steps", "0"});
  require_grid("'tp=1,2' --scaling weka", 2, {"--scaling", "weka", "did you mean weak?"});
  require_message(plan, 2, {"expected layouts to compare", "--grid", "study.candidates"},
                  "layouts ");
  require_message(plan +
                      " --set 'study.candidates=\"tp=1,2\"' --set 'study.baseline=\"tp=4 dp=4\"'",
                  2,
                  {"study.baseline: tp=4 dp=4 cannot run here", "needs 16 ranks; 4 were started"},
                  "layouts ");
  const ProcessResult check =
      weft::test::run_weft("check " + plan + " --set 'study.candidates=\"tp=1,2 zreo=1\"'");
  CHECK(check.exit_code == 2);
  CHECK(check.text.find("study.candidates: zreo: not a key of the layout") != std::string::npos);
}

// Of one process: these commands run nothing.
TEST_CASE("an idealized model or a study with a slip") {
  const auto require_one = [](const std::string& arguments, const std::string& part) {
    const ProcessResult result = weft::test::run_weft(arguments);
    INFO(arguments << "\nexpected: " << part << "\n" << result.text);
    CHECK(result.exit_code == 2);
    CHECK(count(result.text, "weft: ") == 1);
    CHECK(result.text.find(part) != std::string::npos);
    CHECK(result.out.empty());
  };
  require_one("ideal --hiden 12", "ideal: unknown option --hiden; did you mean --hidden?");
  require_one("ideal --hidden 19", "Give --hidden 18, or --communication 19");
  require_one("ideal --ranks 6 --stages 4", "Give 4 or 8");
  require_one("ideal --ranks 1,two", "two");
  require_one("ideal --compute nan", "--compute: expected 0 or more; found nan");
  require_one("ideal --scaling weka", "did you mean weak?");
  require_one("ideal --local 40,-1", "--local: expected milliseconds of 0 or more; found -1");
  require_one("ideal --svg plot.png", "Give plot.png.svg");
  require_one("ideal --study /nonexistent/it.json", "--study: cannot open /nonexistent/it.json");
  require_one("ideal --study " + plan, "expected what `weft layouts --json` writes");
  require_one("ideal --study it.json --compute 3", "--compute");
}

// The ranks that wait for a layout of fewer ranks learn of its end.
TEST_CASE("an error inside a layout ends all ranks and names the layout") {
  const std::string end = plan + " --set 'task.split={train=900,validation=100,seed=7}' --data " +
                          data() +
                          " --set optimizer.lr=1e30 --set optimizer.clip_norm=0"
                          " --set 'optimizer.schedule={kind=\"constant\"}' --steps 8 --grid ";
  require_message(end + "'dp=1,2'", 1, {"tp=1 dp=1 pp=1: step", "optimizer.lr"}, "layouts ");
  require_message(end + "'tp=2 transport=mpi'", 1, {"tp=2 dp=1 pp=1 mpi: step", "optimizer.lr"},
                  "layouts ");
}

TEST_CASE("a killed rank ends the run") {
  const std::string run = weft::test::fresh_folder("killed") + "/it";
  const ProcessResult result =
      weft::test::run_shell(WEFT_LAUNCHER " 4 " WEFT_PROGRAM " train " + plan + four_ranks +
                            " --run " + run + " --data " + data() +
                            " --set 'task.split={train=900,validation=100,seed=7}' --set "
                            "run.steps=1000000 & launcher=$!; "
                            "until [ -s " +
                            run +
                            "/run.jsonl ]; do sleep 0.1; kill -0 $launcher || exit 99; done; "
                            "kill -9 $(ps -o pid= --ppid $launcher | tail -1); wait $launcher");
  INFO(result.text);
  CHECK(result.exit_code != 0);
  CHECK(result.exit_code != 99);
  CHECK(result.seconds < 30.0);
  // What was written until then is whole lines.
  std::ifstream lines(run + "/run.jsonl");
  std::string line;
  std::size_t read = 0;
  while (std::getline(lines, line)) {
    CHECK_NOTHROW(nlohmann::json::parse(line));
    ++read;
  }
  CHECK(read > 0);
}

TEST_CASE("usage errors of the command line") {
  CHECK(weft::test::run_weft("trian").exit_code == 2);
  CHECK(weft::test::run_weft("train").exit_code == 2);
  CHECK(weft::test::run_weft("train /nonexistent.toml").exit_code == 2);
  CHECK(weft::test::run_weft("data make mnist /tmp/x").exit_code == 2);
  CHECK(weft::test::run_weft("--help").exit_code == 0);
  CHECK(weft::test::run_weft("--version").exit_code == 0);
  const ProcessResult check = weft::test::run_weft("check " + plan + " --json --ranks 1");
  CHECK(check.exit_code == 0);
  CHECK(check.json().is_object());
  CHECK(weft::test::run_weft("check " + plan + " --ranks 3").exit_code == 2);
}
