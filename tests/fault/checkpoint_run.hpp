// Small runs with checkpoints, for the tests that kill, fill and alter: the plan, the ways to start
// it, and what it left.
#pragma once

#include <string>
#include <vector>

#include "tests/weft_process.hpp"

namespace weft::test {

// Everything a step can do is on: dropout, augmentation, clipping, a schedule of learning rates.
struct SmallPlan {
  std::string model = "vit";  // or mlp
  int hidden = 16;
  int steps = 6;
  int every_steps = 2;  // a checkpoint
  int keep = 2;
  bool async = false;
};
// Its file, and its data as an argument: "PLAN --data DIR". `name` tells plans of a test apart.
std::string write_plan(const SmallPlan& plan, const std::string& name);

struct Layout {
  int num_ranks;
  std::string keys;               // of [layout] and [comm]: "layout.tp=2 layout.zero=1"
  std::string arguments() const;  // " --set layout.tp=2 --set layout.zero=1"
};
// Of one to four ranks, all legal for a SmallPlan.
const std::vector<Layout>& layouts();

// `weft train PLAN --run RUN_FOLDER` with what `more` adds; `before`: environment, "A=1 B=2 ".
ProcessResult train(const std::string& plan, const std::string& run_folder,
                    const Layout& layout = layouts().front(), const std::string& more = {},
                    const std::string& before = {});

// What decides whether two runs were the same.
struct Outcome {
  std::string state_hash, loss_hash;
  std::vector<std::string> loss_bits;  // of each line of run.jsonl, which must be steps 1, 2, 3 ...
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
// Of a run that has ended; fails the test where run.jsonl misses or repeats a step.
Outcome outcome_of(const std::string& run_folder);
// Lines of run.jsonl, 0 where there is none.
int num_logged_steps(const std::string& run_folder);

// Step folders of a run, oldest first: "…/checkpoints/step-000000004".
std::vector<std::string> step_folders(const std::string& run_folder);
std::string step_folder(const std::string& run_folder, int step);
// Those of them that `weft ckpt verify` finds whole; fails the test where it ends otherwise than
// with 0 or 5.
std::vector<std::string> valid_step_folders(const std::string& run_folder);

// A line of the log of file_faults.cpp.
struct FileOperation {
  int rank = 0;
  int index = 0;
  std::string name;
  long bytes = 0;
  std::string outcome;
  std::string path;
};
std::vector<FileOperation> read_operations(const std::string& log);
// Whether a checkpoint took its name by one of these.
bool has_commit(const std::vector<FileOperation>& operations);
// Environment of a process whose files below RUN_FOLDER/checkpoints are watched by file_faults.
std::string file_faults(const std::string& run_folder, const std::string& log, int rank = 0,
                        int at = -1, const std::string& deed = "record");

// A number from the environment, for tests whose size depends on who runs them.
long number_from_environment(const char* name, long otherwise);
bool contains(const std::string& text, const std::string& part);
// The path without links, as a process sees its own open files.
std::string fresh_run(const std::string& name);

}  // namespace weft::test
