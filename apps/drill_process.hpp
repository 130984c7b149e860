// One run that the drill starts, and its end: by itself, by the deadline, or because the drill was
// interrupted. Whatever happens, no process of it outlives it on this machine.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace weft {

struct DrillJob {
  std::string launcher = {};           // shell words that come before the program; empty: none
  std::vector<std::string> arguments;  // the program and what follows it
  std::string order = {};              // WEFT_DRILL of the ranks; empty: unset
  std::string output_path;             // gets standard output and error of all ranks
  double deadline_s = 0.0;             // 0: none
  // The order stops a rank: once only stopped ranks are left here, they are killed.
  bool stops_a_rank = false;
  // Called a few times a second; false: has made no progress for too long, as at the deadline.
  std::function<bool(double elapsed_s)> watch = {};
};

struct DrillEnd {
  int exit_code = 0;  // the launcher's; 128 + N after signal N
  double seconds = 0.0;
  bool is_hang = false;         // the deadline passed, and the drill ended it
  bool is_interrupted = false;  // the drill was asked to stop, and ended it
};

// Signals that end the drill in order (SIGINT, SIGTERM, SIGHUP), for as long as it lives; processes
// that lose their parent meanwhile become children of this one. One a process.
class DrillSignals {
 public:
  DrillSignals();
  static bool is_interrupted();
};

// Blocks. Standard input is empty: mpirun would eat the caller's. Throws Error(failed) where no
// process can be made.
DrillEnd run_to_its_end(const DrillJob& job);

}  // namespace weft
