#include "apps/report_sections.hpp"

#include <fmt/format.h>

#include "apps/ideal_plot.hpp"

namespace weft {

ReportSection study_section(const std::vector<StudyPoint>& points, const IdealFit& fit) {
  ReportTable table{{"layout", "devices", "measured ms", "fitted ms", "error %", "by the others"},
                    {}};
  const std::vector<FittedPoint> fitted = judge_fit(fit, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const FittedPoint& one = fitted[i];
    table.rows.push_back({points[i].name, fmt::format("{}", points[i].devices()),
                          fmt::format("{:.2f}", points[i].measured_ms),
                          fmt::format("{:.2f}", one.predicted_ms),
                          fmt::format("{:+.1f}", 100 * one.error),
                          one.without_it_ms ? fmt::format("{:.2f}", *one.without_it_ms) : "-"});
  }
  const std::array<SvgPicture, 2> plots = study_plots(points, fit);
  const std::string warning = fit.warning(points.size());
  return {"Scaling of the study",
          {fmt::format("The idealized model fitted to {} layouts, in ms: {}. compute is divided by "
                       "devices and by the pipeline's ideal busy share; tp, dp, pp count where "
                       "that axis has two ranks or more. Largest error {:.1f} %. by the others: "
                       "what a fit without that layout says of it. {}",
                       points.size(), fit.text(), 100 * largest_error(fitted), warning),
           plots[0], plots[1], table}};
}

ReportTable ideal_table(const IdealModel& model) {
  ReportTable table{{"devices", "step ms", "samples/s", "speed-up", "efficiency %", "device-s"},
                    {}};
  for (index_t devices = 1; devices <= 64; devices *= 2) {
    if (!fault_of(model, devices).empty()) continue;
    const IdealStep step = ideal_step(model, devices);
    table.rows.push_back(
        {fmt::format("{}", devices), fmt::format("{:.2f}", step.step_ms),
         fmt::format("{:.0f}", step.samples_per_s), fmt::format("{:.2f}", step.speed_up),
         fmt::format("{:.1f}", 100 * step.efficiency), fmt::format("{:.3f}", step.device_s)});
  }
  return table;
}

ReportSection ideal_section(const IdealModel& model) {
  return {"Idealized model",
          {fmt::format("{:g} ms of computing shared out, {:g} ms fixed, {:g} ms of communication "
                       "from two devices on, {:g} ms of it hidden; {:g} samples a step. It "
                       "forecasts no device, network or loader.",
                       model.compute_ms, model.fixed_ms, model.communication_ms, model.hidden_ms,
                       model.batch),
           ideal_table(model)}};
}

}  // namespace weft
