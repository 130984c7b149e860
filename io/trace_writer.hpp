// A trace in Chrome's JSON format, which Perfetto and chrome://tracing show: a process for each
// rank, in it a row for each thing that goes on by itself. Text alone; whose clock is whose and
// which ranks there are is the caller's business.
//
//   process "rank 1: tp 0, dp 0, pp 1"
//     steps      | 21                               | 22
//     main       | everything that the main thread does; spans nest, own times add up to the steps
//     pipeline   | F0 | wait | B0 | F1 | B1 ...       forward and backward of microbatch k
//     data       | wait for a batch
//     loader     | read  read                        the loader's thread
//     ready      | a full bucket of gradients, until it is launched: those before it come first
//     tp, dp, .. | collectives and messages of that group from their start to their end; a second
//                  row where they are under way at once; an arrow from each send to its receive
#pragma once

#include <cstdint>
#include <string>

#include "core/trace.hpp"
#include "io/file.hpp"

namespace weft {

struct TracePlace {
  int rank = 0;           // the process number
  std::string name;       // for people
  std::int64_t shift_ns;  // from this trace's clock to the file's
};

// Everything recorded on one rank: objects, one a line, with a comma between two. Never empty.
std::string trace_events(const Trace& trace, const TracePlace& place);

// The file: one rank's events after the other's, so that never all are in memory.
class TraceFile {
 public:
  explicit TraceFile(std::string path) : file_(std::move(path)) {}

  void add(const std::string& events);
  // Ends the document; the file takes its name.
  void commit();

 private:
  AtomicFile file_;
  bool has_events_ = false;
};

}  // namespace weft
