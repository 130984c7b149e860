// `weft drill`: the rehearsal before a long job. Runs a short form of a plan undisturbed, then
// again and again: disturbed at some point, resumed on the same or other layouts, compared bit by
// bit.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "apps/run_start.hpp"
#include "core/range.hpp"

namespace weft {

struct DrillOptions {
  RunInputs inputs;
  std::optional<index_t> tries;
  std::optional<index_t> only;  // this try and no other
  // A try is one job that is killed so many times; else a job that is disturbed once.
  std::optional<index_t> kills;
  std::optional<std::uint64_t> seed;
  std::optional<index_t>
      num_ranks;                 // most of a layout; else the plan's, or the largest of --layouts
  std::string layouts;           // "tp=2 dp=1; dp=2"; empty: the plan's, and others that fit
  std::string points;            // as parse_disturbances takes it; empty: a bit of everything
  std::optional<index_t> steps;  // of each run
  std::string keep;              // folder of all runs; empty: one that stays if a try failed
  std::string launcher;          // shell words; {ranks}, else -n N after them
  std::optional<double> deadline_s;  // of one run
  bool json = false;
};

// What --help says of --points.
std::string drill_points_help();

// Starts other processes; is none of a parallel run itself. Text for people to `text`, one line a
// try; with `json` the record as one line to `out`. Returns 0 where all tries came to the bits of
// the undisturbed run, 1 where one did not, 3 where it was interrupted; the exit code of the
// undisturbed run where that failed. Throws Error(usage).
int drill_plan(const DrillOptions& options, std::ostream& text, std::ostream& out);

}  // namespace weft
