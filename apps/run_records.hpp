// The records of one run as its folder holds them (RECORDS.md), for those who read and do not
// write: nothing is changed, and a run that goes on may be read, too.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

// A line of run.jsonl. A number that is null there is NaN here.
struct StepLine {
  index_t step = 0;
  double loss = 0.0;
  double lr = 0.0;
  double grad_norm = 0.0;
  double step_ms = 0.0;
  double data_wait_ms = 0.0;
  double samples = 0.0;
};

struct RunRecords {
  std::string folder;
  std::string name;  // the folder's own
  std::string plan;  // plan.toml
  std::vector<StepLine> steps;
  std::vector<nlohmann::ordered_json> evaluations;
  std::vector<nlohmann::ordered_json> events;
  std::vector<nlohmann::ordered_json> test_uses;
  nlohmann::ordered_json summary;  // null: the run has not ended
  bool is_async = false;           // of `weft async`, another objective
};

// Throws Error(data) where the folder holds no run, or what cannot be read. A line that is no whole
// object is left out, as a resume leaves it out.
RunRecords read_run(const std::string& folder);

}  // namespace weft
