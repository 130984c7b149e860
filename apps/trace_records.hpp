// The pipeline's part of a trace as `weft train --trace` and `weft profile --trace` write it
// (io/trace_writer.hpp), for those who read: `weft report`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/range.hpp"

namespace weft {

// What a stage did with one microbatch.
struct PipelineCell {
  bool is_backward = false;
  index_t microbatch = 0;
  double begin_ms = 0.0, end_ms = 0.0;
};

struct TracedRank {
  index_t rank = 0, tp = 0, dp = 0, pp = 0;
  double begin_ms = 0.0, end_ms = 0.0;  // of its step
  std::vector<PipelineCell> cells;      // in order of begin
  index_t dropped_events = 0;
};

// One step of all ranks, from 0 ms, where the first of them began it.
struct TracedStep {
  std::string path;
  index_t step = 0;
  index_t first_step = 0, last_step = 0;  // that the trace has on all ranks
  std::vector<TracedRank> ranks;
};

// `step`: which; none: the one that took rank 0 the median time. Throws Error(usage) where the file
// is missing, cut off, no such trace or without that step.
TracedStep read_trace(const std::string& path, std::optional<index_t> step);
TracedStep parse_trace(const std::string& path, const std::string& text,
                       std::optional<index_t> step);

}  // namespace weft
