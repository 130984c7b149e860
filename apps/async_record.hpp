// What is known of an asynchronous run: each update in the order in which they were applied, and
// their figures. The order, with what each gradient was computed on, is all that decides the
// result.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trainer.hpp"
#include "io/run_log.hpp"
#include "parallel/data/update_server.hpp"

namespace weft {

// Says that this is no synchronous run; in every report.
std::string async_objective(index_t max_staleness);

// The line of an update in run.jsonl: keys of a step, and worker, batch, based_on, staleness,
// compute_ms, wait_ms.
StepRecord update_record(const UpdateServer::Update& update, const StepResult& result,
                         double since_last_ms, double elapsed_s);

// An update as it was recorded.
struct RecordedUpdate {
  index_t worker;
  WorkerTask task;
  std::string loss_bits;  // in hex
};
// Throws Error(data) where a line is none of an asynchronous run, or one is missing.
std::vector<RecordedUpdate> read_updates(const std::string& path);

// Whether a run folder holds such a run.
bool is_async_run(const std::string& run_folder);

class AsyncRecord {
 public:
  AsyncRecord(index_t num_workers, index_t max_staleness)
      : max_staleness_(max_staleness), workers_(static_cast<std::size_t>(num_workers)) {}
  void add(const UpdateServer::Update& update);

  index_t num_updates() const;
  double mean_staleness() const;
  index_t largest_staleness() const { return static_cast<index_t>(counts_.size()) - 1; }
  // {"max_staleness", "updates", "staleness": {"mean", "largest", "updates": [with 0, 1, ..]},
  // "workers": [{"worker", "updates", "compute_ms" and "wait_ms" (means)}]}
  nlohmann::ordered_json json() const;

 private:
  struct Worker {
    index_t updates = 0;
    double compute_ms = 0.0, wait_ms = 0.0;  // of all updates
  };
  index_t max_staleness_;
  std::vector<index_t> counts_;  // updates by staleness
  std::vector<Worker> workers_;
};

}  // namespace weft
