// `weft eval` where something is wrong: a slip, a checkpoint that is missing, damaged or another
// model's; and that no use of the test split goes unrecorded, or is recorded without figures.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/fault/checkpoint_run.hpp"

namespace {

using namespace weft::test;
namespace fs = std::filesystem;

// A run with the checkpoints of steps 2 and 4, made once.
struct Good {
  std::string plan, run;
};

const Good& good_run() {
  static const Good good = [] {
    Good made{write_plan({.model = "mlp", .steps = 4}, "eval"), fresh_run("eval-good")};
    const ProcessResult result = train(made.plan, made.run);
    INFO(result.text);
    REQUIRE(result.exit_code == 0);
    return made;
  }();
  return good;
}

std::string copy_of_run() {
  const std::string run = fresh_run("eval-copy");
  fs::copy(good_run().run, run, fs::copy_options::recursive);
  return run;
}

ProcessResult eval(const std::string& checkpoint, const std::string& split,
                   const std::string& more = {}) {
  return run_weft_ranks(2, "eval " + good_run().plan + " --set layout.dp=2 --json --checkpoint " +
                               checkpoint + " --split " + split + more);
}

// One message with all of `parts`, and no figures.
void require_fault(const ProcessResult& result, int code, const std::vector<std::string>& parts) {
  INFO(result.text);
  CHECK(result.exit_code == code);
  for (const std::string& part : parts) {
    INFO("expected: " << part);
    CHECK(contains(result.text, part));
  }
  CHECK_FALSE(contains(result.text, "macro"));
  CHECK(result.out.empty());
}

nlohmann::json summary_of(const std::string& run) {
  std::ifstream file(run + "/summary.json");
  return nlohmann::json::parse(file);
}

int num_recorded(const std::string& run) {
  std::ifstream file(run + "/test_uses.jsonl");
  int count = 0;
  for (std::string line; std::getline(file, line); ++count)
    CHECK(nlohmann::json::parse(line).contains("time"));
  return count;
}

void flip_byte(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(fs::file_size(path) / 2));
  const auto byte = static_cast<char>(file.peek() ^ 0x10);
  file.seekp(file.tellg());
  file.put(byte);
}

}  // namespace

TEST_CASE("slips on the command line") {
  const std::string run = copy_of_run();
  require_fault(eval(run, "tset"), 2, {"--split", "validation or test", "tset"});
  CHECK(run_weft("eval " + good_run().plan + " --checkpoint " + run).exit_code == 2);
  CHECK(run_weft("eval " + good_run().plan + " --split test").exit_code == 2);
  require_fault(eval(run, "test", " --set layout.tp=2"), 2, {"2 ranks"});
  CHECK_FALSE(fs::exists(run + "/test_uses.jsonl"));
}

TEST_CASE("no checkpoint where one is named") {
  const std::string run = copy_of_run();
  require_fault(eval(run + "/none", "test"), 5, {"--checkpoint", run + "/none", "found nothing"});
  require_fault(eval(run + "/summary.json", "test"), 5, {"summary.json", "found something else"});
  require_fault(eval(step_folder(run, 3), "test"), 5, {"step-000000003", "found nothing"});
  fs::remove_all(run + "/checkpoints");
  require_fault(eval(run, "test"), 5, {run, "MANIFEST"});
  CHECK_FALSE(fs::exists(run + "/test_uses.jsonl"));
}

TEST_CASE("a damaged checkpoint: refused where it is named, passed over in a run") {
  const std::string run = copy_of_run();
  flip_byte(step_folder(run, 4) + "/shard-00000.h5");
  require_fault(eval(step_folder(run, 4), "test"), 5, {"step-000000004", "shard-00000.h5"});
  const ProcessResult older = eval(run, "validation");
  INFO(older.text);
  REQUIRE(older.exit_code == 0);
  CHECK(contains(older.text, "WARNING"));
  CHECK(contains(older.text, "step-000000004"));
  CHECK(older.json().at("step") == 2);
  flip_byte(step_folder(run, 2) + "/index.h5");
  require_fault(eval(run, "test"), 5, {"none of its checkpoints is valid", "index.h5"});
  fs::remove(step_folder(run, 2) + "/MANIFEST");
  require_fault(eval(step_folder(run, 2), "test"), 5, {"step-000000002", "MANIFEST"});
  CHECK_FALSE(fs::exists(run + "/test_uses.jsonl"));
}

TEST_CASE("another model, task or data than the checkpoint's") {
  const std::string run = copy_of_run();
  require_fault(eval(run, "test", " --set model.hidden=32"), 2,
                {"model.hidden", "16 when it was saved, 32 now", "--allow-plan-change"});
  require_fault(eval(run, "test", " --set model.layers=3"), 2, {"model.layers"});
  require_fault(eval(run, "test", " --set task.split.seed=8"), 2, {"task.split.seed"});
  require_fault(eval(run, "test", " --set optimizer.kind=sgd"), 2, {"optimizer.kind"});
  require_fault(eval(run, "test", " --set model.hidden=32 --allow-plan-change"), 2,
                {"another model"});

  const std::string other = fresh_folder("eval-other-data");
  REQUIRE(run_weft("data make cifar10 " + other + " --rows 80 --seed 5").exit_code == 0);
  const std::string plan = good_run().plan.substr(0, good_run().plan.find(" --data"));
  const std::string arguments =
      "eval " + plan + " --data " + other + " --json --split validation --checkpoint " + run;
  require_fault(run_weft(arguments), 2, {"the data set's bytes"});
  const ProcessResult allowed = run_weft(arguments + " --allow-plan-change");
  INFO(allowed.text);
  CHECK(allowed.exit_code == 0);
  CHECK(contains(allowed.text, "WARNING"));
  // What does not decide the figures may differ.
  CHECK(eval(run, "validation", " --set optimizer.lr=1 --set run.steps=2 --set task.augment=false")
            .exit_code == 0);
  CHECK_FALSE(fs::exists(run + "/test_uses.jsonl"));
}

TEST_CASE("every use of the test split is recorded, and in the summaries") {
  const std::string run = copy_of_run();
  CHECK(summary_of(run).at("test_split_uses") == 0);
  const auto before = summary_of(run);
  const ProcessResult first = eval(step_folder(run, 4), "test");
  INFO(first.text);
  REQUIRE(first.exit_code == 0);
  CHECK(first.json().at("test_split_uses") == 1);
  CHECK(contains(first.text, "use 1 of the test split"));
  CHECK(num_recorded(run) == 1);
  auto expected = before;
  expected["test_split_uses"] = 1;
  CHECK(summary_of(run) == expected);

  CHECK(eval(run, "validation").json().at("test_split_uses") == 1);
  CHECK(eval(run, "test").json().at("test_split_uses") == 2);
  CHECK(num_recorded(run) == 2);
  // The run goes on from step 2, and its new summary knows.
  fs::remove_all(step_folder(run, 4));
  const ProcessResult resumed = train(good_run().plan, run, layouts()[0], "--resume auto");
  INFO(resumed.text);
  REQUIRE(resumed.exit_code == 0);
  CHECK(summary_of(run).at("test_split_uses") == 2);
}

TEST_CASE("a use is recorded with the areas under curves where there are two classes") {
  const auto last_use = [](const std::string& run) {
    std::ifstream file(run + "/test_uses.jsonl");
    std::string line;
    REQUIRE(std::getline(file, line));
    return nlohmann::json::parse(line);
  };
  const std::string ten = copy_of_run();
  REQUIRE(eval(ten, "test").exit_code == 0);
  CHECK_FALSE(last_use(ten).contains("roc_auc"));
  CHECK_FALSE(last_use(ten).contains("pr_auc"));

  const std::string data = fresh_folder("eval-bank");
  REQUIRE(run_weft("data make bank " + data + " --rows 900").exit_code == 0);
  const std::string plan = WEFT_PLANS "/bank-mlp.toml --data " + data +
                           " --set task.split.train=600 --set task.split.validation=100"
                           " --set task.split.test=200 ";
  const std::string run = fresh_run("eval-bank-run");
  const ProcessResult trained = run_weft("train " + plan + "--set run.steps=3 --run " + run);
  INFO(trained.text);
  REQUIRE(trained.exit_code == 0);
  const ProcessResult used =
      run_weft("eval " + plan + "--set run.steps=3 --split test --json --checkpoint " + run);
  INFO(used.text);
  REQUIRE(used.exit_code == 0);
  for (const char* area : {"roc_auc", "pr_auc"}) {
    INFO(area);
    CHECK(used.json().at("metrics").at(area) > 0.0);
    CHECK(last_use(run).at(area) == used.json().at("metrics").at(area));
  }
  require_fault(run_weft("eval " + plan + "--set run.steps=3 --set task.split.test=0 --json " +
                         "--allow-plan-change --split test --checkpoint " + run),
                2, {"--split test", "no samples", "task.split.test = 0"});
}

TEST_CASE("while another process holds the run, its summary is left to it") {
  const std::string run = copy_of_run();
  const auto before = summary_of(run);
  const std::string path = run + "/checkpoints/.lease";
  const int lease = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  REQUIRE(lease >= 0);
  REQUIRE(flock(lease, LOCK_EX | LOCK_NB) == 0);
  const ProcessResult result = eval(run, "test");
  close(lease);
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(contains(result.text, "the run's next summary will show it"));
  CHECK(num_recorded(run) == 1);
  CHECK(summary_of(run) == before);
}

TEST_CASE("a use that cannot be recorded shows no figures") {
  const std::string run = copy_of_run();
  fs::create_directory(run + "/test_uses.jsonl");
  require_fault(eval(run, "test"), 1, {"test_uses.jsonl"});
}

TEST_CASE("a checkpoint outside of a run: one line says that nothing is recorded") {
  const std::string folder = fresh_folder("eval-outside") + "/copied";
  fs::copy(step_folder(good_run().run, 4), folder, fs::copy_options::recursive);
  const ProcessResult result = eval(folder, "test");
  INFO(result.text);
  REQUIRE(result.exit_code == 0);
  CHECK(result.json().at("test_split_uses").is_null());
  CHECK(contains(result.text, "on no record"));
  CHECK_FALSE(fs::exists(fs::path(folder).parent_path() / "test_uses.jsonl"));
}
