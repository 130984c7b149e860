#include "apps/drill_arguments.hpp"

namespace weft {

void add_drill_arguments(CLI::App& drill, DrillOptions& options) {
  drill.add_option("--tries", options.tries, "runs to disturb (default 8, or one a point)");
  drill.add_option("--kills", options.kills,
                   "kill one job so many times, spread over its steps, each resume on a layout "
                   "drawn anew (--tries jobs, default 1)");
  drill.add_option("--only", options.only, "only the try of this number, to repeat it");
  drill.add_option("--seed", options.seed, "of all that is drawn (default: another one each time)");
  drill.add_option("--ranks", options.num_ranks, "most ranks of a layout (default: the plan's)");
  drill
      .add_option("--layouts", options.layouts,
                  "layouts to draw from, the first for the undisturbed run: \"tp=2 dp=1; dp=2; "
                  "pp=2\" (default: the plan's, and others of as many ranks, and one rank)")
      ->type_name("LIST");
  drill.add_option("--points", options.points, drill_points_help())->type_name("LIST");
  drill.add_option(
      "--steps", options.steps,
      "of each run (default: the plan's, at most 24; with --kills at most twice their number)");
  drill.add_option("--keep", options.keep,
                   "keep all runs in this new folder (default: only those of failed tries, in "
                   "runs/drill-<plan>-<time>)");
  drill.add_option("--launcher", options.launcher,
                   "starts ranks in place of apps/launch.sh: shell words, in which {ranks} is "
                   "their number, else -n N follows. It must pass on WEFT_DRILL (mpirun -x)");
  drill.add_option("--deadline", options.deadline_s,
                   "seconds that a run may take (default: from the undisturbed run)");
}

}  // namespace weft
