#include "apps/async_arguments.hpp"

namespace weft {

void add_async_arguments(CLI::App& command, AsyncOptions& options) {
  command.add_option("--run", options.run_folder,
                     "run folder (default runs/<plan>-<time>); must not hold a run");
  command.add_option("--max-staleness", options.max_staleness,
                     "most updates between the values that a gradient was computed on and those "
                     "that it is applied to (default: 2 (dp - 1); dp - 1 is the least)");
  command
      .add_option("--delay", options.delays,
                  "RANK:WHERE=MS,...: slows workers down; WHERE as in `weft profile`")
      ->type_name("LIST");
  command
      .add_option("--replay", options.replay,
                  "repeat the run of this folder on one rank, in the recorded order, and compare "
                  "all bits (exact mode)")
      ->type_name("RUN");
}

}  // namespace weft
