#include "tests/fault/checkpoint_run.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace weft::test {

namespace fs = std::filesystem;

namespace {

// 320 images to train on, 80 to validate with: an epoch has 20 steps.
std::string data() {
  const std::string folder = test_folder() + "/tiny-cifar10";
  if (!fs::exists(folder + "/test_batch.bin")) {
    REQUIRE(run_weft("data make cifar10 " + folder + " --rows 80").exit_code == 0);
  }
  return folder;
}

constexpr const char* fixed_part = R"(
[task]
dataset = "cifar10"
split = { train = 320, validation = 80, seed = 7 }
augment = true
[batch]
global = 16
micro = 2
[numerics]
shards = 4
lanes = 4
[optimizer]
kind = "adamw"
lr = 1e-3
weight_decay = 0.05
clip_norm = 0.5
schedule = { kind = "cosine", warmup_steps = 5 }
[eval]
every_epochs = 0
)";

}  // namespace

std::string write_plan(const SmallPlan& plan, const std::string& name) {
  const fs::path folder = fs::path(test_folder()) / "checkpoint-plans";
  fs::create_directories(folder);
  const std::string path = (folder / (name + ".toml")).string();
  std::ofstream file(path);
  file << fixed_part << "[model]\nkind = \"" << plan.model << "\"\nlayers = 2\nmlp_ratio = 2\n"
       << "dropout = 0.1\nhidden = " << plan.hidden << "\n";
  if (plan.model == "vit") file << "heads = 4\npatch = 8\n";
  file << "[run]\nsteps = " << plan.steps << "\n[checkpoint]\nevery_steps = " << plan.every_steps
       << "\nkeep = " << plan.keep << "\nasync = " << (plan.async ? "true" : "false") << "\n";
  return path + " --data " + data();
}

std::string Layout::arguments() const {
  std::istringstream words(keys);
  std::string text;
  for (std::string key; words >> key;) text += " --set " + key;
  return text;
}

const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {1, ""},
      {1, "comm.transport=mpi"},
      {2, "layout.tp=2 layout.sequence_parallel=true"},
      {2, "layout.dp=2 layout.zero=1"},
      {2, "layout.pp=2 layout.schedule=gpipe comm.transport=mpi"},
      {2, "layout.dp=2"},
      {3, "layout.tp=3"},
      {3, "layout.dp=3 layout.zero=1"},
      {4, "layout.tp=2 layout.dp=2 layout.zero=1 layout.sequence_parallel=true"},
      {4, "layout.tp=2 layout.pp=2 layout.sequence_parallel=true layout.schedule=1f1b"},
      {4, "layout.dp=2 layout.pp=2 layout.zero=1 layout.order=pp,tp,dp"},
      {4, "layout.dp=4 layout.zero=1 comm.transport=mpi"},
      {4, "layout.tp=4"},
  };
  return all;
}

ProcessResult train(const std::string& plan, const std::string& run_folder, const Layout& layout,
                    const std::string& more, const std::string& before) {
  const std::string launch =
      layout.num_ranks == 1 ? "" : WEFT_LAUNCHER " " + std::to_string(layout.num_ranks) + " ";
  return run_shell(before + launch + WEFT_PROGRAM " train " + plan + layout.arguments() +
                   " --run " + run_folder + " " + more);
}

Outcome outcome_of(const std::string& run_folder) {
  INFO(run_folder);
  Outcome outcome;
  std::ifstream summary_file(run_folder + "/summary.json");
  REQUIRE(summary_file);
  const auto summary = nlohmann::json::parse(summary_file);
  outcome.state_hash = summary.at("state_hash");
  outcome.loss_hash = summary.at("loss_hash");
  std::ifstream steps(run_folder + "/run.jsonl");
  for (std::string line; std::getline(steps, line);) {
    const auto step = nlohmann::json::parse(line);
    outcome.loss_bits.push_back(step.at("loss_bits"));
    CHECK(step.at("step") == outcome.loss_bits.size());
  }
  CHECK(summary.at("steps") == outcome.loss_bits.size());
  return outcome;
}

int num_logged_steps(const std::string& run_folder) {
  std::ifstream steps(run_folder + "/run.jsonl");
  int count = 0;
  for (std::string line; std::getline(steps, line);) ++count;
  return count;
}

std::vector<std::string> step_folders(const std::string& run_folder) {
  std::vector<std::string> folders;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(run_folder + "/checkpoints", none)) {
    if (entry.path().filename().string().starts_with("step-")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

std::string step_folder(const std::string& run_folder, int step) {
  const std::string digits = std::to_string(step);
  return run_folder + "/checkpoints/step-" + std::string(9 - digits.size(), '0') + digits;
}

std::vector<std::string> valid_step_folders(const std::string& run_folder) {
  std::vector<std::string> valid;
  for (const std::string& folder : step_folders(run_folder)) {
    const ProcessResult result = run_weft("ckpt verify " + folder);
    INFO(result.text);
    CHECK((result.exit_code == 0 || result.exit_code == 5));
    if (result.exit_code == 0) valid.push_back(folder);
  }
  return valid;
}

std::vector<FileOperation> read_operations(const std::string& log) {
  std::vector<FileOperation> operations;
  std::ifstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    FileOperation one;
    std::istringstream words(line);
    words >> one.rank >> one.index >> one.name >> one.bytes >> one.outcome >> std::ws;
    std::getline(words, one.path);
    operations.push_back(one);
  }
  return operations;
}

bool has_commit(const std::vector<FileOperation>& operations) {
  return std::any_of(operations.begin(), operations.end(), [](const FileOperation& one) {
    const bool is_done = one.outcome == "ok" || one.outcome == "killed-after";
    return one.name == "rename" && is_done && contains(one.path, "-> ") &&
           contains(one.path.substr(one.path.find("-> ")), "/step-");
  });
}

std::string file_faults(const std::string& run_folder, const std::string& log, int rank, int at,
                        const std::string& deed) {
  fs::remove(log);
  return "LD_PRELOAD=" WEFT_FILE_FAULTS " WEFT_FAULT_FOLDER=" + run_folder +
         "/checkpoints WEFT_FAULT_LOG=" + log + " WEFT_FAULT_RANK=" + std::to_string(rank) +
         " WEFT_FAULT_AT=" + std::to_string(at) + " WEFT_FAULT_DO=" + deed + " ";
}

long number_from_environment(const char* name, long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atol(text) : otherwise;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string fresh_run(const std::string& name) {
  return (fs::canonical(fresh_folder(name)) / "run").string();
}

}  // namespace weft::test
