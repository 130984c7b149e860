// What a report says of runs, profiles, traces and a study, out of their records alone. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/ideal_fit.hpp"
#include "apps/ideal_model.hpp"
#include "apps/profile_records.hpp"
#include "apps/report_document.hpp"
#include "apps/run_records.hpp"
#include "apps/trace_records.hpp"

namespace weft {

// All runs beside each other, then each by itself, but for its plan.
std::vector<ReportSection> run_sections(const std::vector<RunRecords>& runs);
// Runs of one plan that differ in the seed: how many reached the target, and when. None where no
// two runs are so.
std::optional<ReportSection> seed_section(const std::vector<RunRecords>& runs);
// The account, waits, buckets and memory.
std::vector<ReportSection> profile_sections(const ProfileRecord& profile);
// Each rank's passes over the microbatches of one step.
ReportSection pipeline_section(const TracedStep& step, const std::string& title);
ReportSection plan_section(const std::vector<RunRecords>& runs);
// Measured step times, and what the idealized model fitted to them says.
ReportSection study_section(const std::vector<StudyPoint>& points, const IdealFit& fit);
// The idealized model as numbers; the page has sliders in its place.
ReportSection ideal_section(const IdealModel& model);
ReportTable ideal_table(const IdealModel& model);

}  // namespace weft
