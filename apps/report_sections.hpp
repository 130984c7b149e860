// What a report says of runs and of a study, out of their records alone. Pure.
#pragma once

#include <vector>

#include "apps/ideal_fit.hpp"
#include "apps/ideal_model.hpp"
#include "apps/report_document.hpp"
#include "apps/run_records.hpp"

namespace weft {

// All runs beside each other, then each by itself, but for its plan.
std::vector<ReportSection> run_sections(const std::vector<RunRecords>& runs);
ReportSection plan_section(const std::vector<RunRecords>& runs);
// Measured step times, and what the idealized model fitted to them says.
ReportSection study_section(const std::vector<StudyPoint>& points, const IdealFit& fit);
// The idealized model as numbers; the page has sliders in its place.
ReportSection ideal_section(const IdealModel& model);
ReportTable ideal_table(const IdealModel& model);

}  // namespace weft
