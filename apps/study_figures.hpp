// What `weft layouts` says of scaling: which layouts have the baseline's batch and which its batch
// a replica, device-seconds, the pipeline's ideal share of work beside the measured one, the spread
// over repeats, and whether the model is accepted. Pure.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/layout_table.hpp"

namespace weft {

// Against the baseline.
enum class RowScaling {
  baseline,
  strong,  // the same global batch
  weak,    // the same batch of a replica, so another global one
  other    // neither
};
std::string name_of(RowScaling scaling);

struct StudyFigures {
  RowScaling scaling;
  index_t batch;                 // global
  double updates;                // of an epoch, as a share of the baseline's
  double least_ms, greatest_ms;  // of the repeats' medians
  double device_s_per_step;      // of the median
  double ideal_busy;             // m / (m + p - 1)
  // The part of forward, backward, bubble and communication that forward and backward are: what a
  // stage waits after its last microbatch is no bubble to it, but waiting for the others.
  double measured_busy;
  std::optional<double> metric;  // of task.accept, after the last step; none: not evaluated
  bool is_accepted;              // by its bounds; false without a value
};
StudyFigures study_figures(const LayoutTable& table, const LayoutRow& row);

// Whether a value of accept.metric is within its bounds.
bool is_within(const TargetPlan& accept, double value);

void print_scaling(const LayoutTable& table, std::ostream& text);
// What it adds to the JSON of a row, and of the table.
nlohmann::ordered_json scaling_json(const LayoutTable& table, const LayoutRow& row);
nlohmann::ordered_json acceptance_json(const LayoutTable& table);

}  // namespace weft
