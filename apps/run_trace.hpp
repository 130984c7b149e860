// `weft train --trace`: which steps are recorded, and all ranks' traces into one file on one clock.
#pragma once

#include <optional>
#include <string>

#include "apps/trainer.hpp"
#include "core/range.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

struct TraceOptions {
  std::string path;        // empty: trace.json in the run folder; else it ends in .json
  index_t num_steps = 20;  // recorded, after the warm-up of step times
};

// Throws Error(usage).
void check_trace_options(const TraceOptions& options);

class RunTrace {
 public:
  // The `num_steps` steps of this process: those after the warm-up are recorded, and memory is
  // bounded whatever their number (Trace::most_events).
  RunTrace(const TraceOptions& options, Trace& trace, index_t num_steps);

  // Around the i-th step of this process, which is step `step` of the run.
  void before_step(index_t i);
  void after_step(index_t i, index_t step);
  // Something rare that began at `begin_ns`, recorded wherever it is.
  void add(const char* row, index_t steps_done, std::int64_t begin_ns);

  // Collective over `world`: rank 0 writes, one rank's events after the other's. Returns what went
  // wrong, on all ranks alike, else nothing.
  std::string write(Communicator& world, Mesh& mesh, const std::string& path);

 private:
  Trace& trace_;
  Range recorded_;  // of the steps of this process
  std::int64_t step_begin_ns_ = 0;
};

}  // namespace weft
