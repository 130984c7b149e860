// The folder of one run: the plan, a line a step, evaluations, the split, the summary. One rank
// makes it. Formats are JSON, one object a line; what the numbers mean is the trainer's business.
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

  const std::string& folder() const { return folder_; }
  void add_step(const StepRecord& record);            // run.jsonl
  void add_evaluation(std::string_view json_object);  // eval.jsonl
  void write_split(std::string_view json_object);     // split.json
  void write_summary(std::string_view json_object);   // summary.json

 private:
  std::string path_of(std::string_view name) const;

  std::string folder_;
  OutputFile steps_;
};

}  // namespace weft
