// The folder of one run: the plan, a line a step, evaluations, the split, events, the summary. One
// rank makes it. Formats are JSON, one object a line; what the numbers mean is the trainer's
// business.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/range.hpp"
#include "io/file.hpp"

namespace weft {

struct StepRecord {
  index_t step = 0;
  index_t epoch = 0;
  double loss = 0.0;
  double lr = 0.0;
  double grad_norm = 0.0;
  double step_ms = 0.0;
  double data_wait_ms = 0.0;
  index_t num_real = 0;                              // effective samples
  std::vector<std::pair<std::string, double>> more;  // further numbers, by plain names
};

// The line of a step. Numbers are the shortest decimals that read back to the same bits; what is
// not finite is null; `loss_bits` are the bits of the loss in hex.
std::string json_line(const StepRecord& record);

// "runs/<plan name>-<UTC time to the second>".
std::string default_run_folder(std::string_view plan_name);

class RunLog {
 public:
  // Makes `folder`, and in it plan.toml with `plan_text` and an empty run.jsonl. Throws
  // Error(usage) if it already holds a run, changing nothing; Error(failed) if the system refuses.
  RunLog(std::string folder, std::string_view plan_text);

  // Goes on in `folder` after `num_done` steps: run.jsonl and eval.jsonl are cut back to those
  // steps (io/step_lines.hpp), plan.toml becomes `plan_text` (the one it replaces stays as
  // plan-1.toml, plan-2.toml, ...), summary.json of a former end goes before the first line that it
  // does not know. A folder without a run is made as above, so 0 steps start anew in any case.
  // However often it is killed on the way, the next call ends with the same files. For one process
  // at a time. Throws Error(usage) if the folder cannot hold a run.
  static RunLog resume(std::string folder, std::string_view plan_text, index_t num_done);

  const std::string& folder() const { return folder_; }
  // Of one of its files, as it is now; empty where there is none.
  std::string text_of(std::string_view name) const;
  // Of a run that nothing was opened of yet.
  static std::string text_of(const std::string& folder, std::string_view name);
  void add_step(const StepRecord& record);            // run.jsonl
  void sync() { steps_.sync(); }                      // run.jsonl to the disk
  void add_evaluation(std::string_view json_object);  // eval.jsonl
  // What happened to the run rather than in it, such as a resume: events.jsonl, never cut back.
  void add_event(std::string_view json_object);
  void write_split(std::string_view json_object);    // split.json
  void write_summary(std::string_view json_object);  // summary.json

 private:
  RunLog(std::string folder, OutputFile steps, bool has_old_summary);
  void append_line(std::string_view name, std::string_view json_object);
  std::string path_of(std::string_view name) const;

  std::string folder_;
  OutputFile steps_;
  bool has_old_summary_ = false;
};

}  // namespace weft
