#include "apps/ideal_plot.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace weft {

namespace {

PlotLine line_named(const std::string& name, std::size_t color) {
  return {.name = name, .color = plot_color(color)};
}

}  // namespace

std::array<SvgPicture, 2> ideal_plots(const std::vector<IdealStep>& steps) {
  StackPlot parts{.title = "A step on N devices",
                  .value_name = "ms",
                  .parts = {{"computing", plot_color(0)},
                            {"bubble", plot_color(1)},
                            {"fixed", plot_color(7)},
                            {"exposed communication", plot_color(3)}},
                  .bars = {}};
  PlotLine perfect = line_named("as many times the devices", 7), model = line_named("the model", 0);
  perfect.is_dashed = true;
  perfect.has_points = false;
  for (const IdealStep& step : steps) {
    parts.bars.push_back({std::to_string(step.devices),
                          {step.compute_ms, step.bubble_ms, step.fixed_ms, step.exposed_ms}});
    const auto devices = static_cast<double>(step.devices);
    perfect.x.push_back(devices);
    perfect.y.push_back(devices);
    model.x.push_back(devices);
    model.y.push_back(step.speed_up);
  }
  return {draw(parts), draw(LinePlot{.title = "Speed-up",
                                     .x_name = "devices",
                                     .y_name = "speed-up",
                                     .lines = {perfect, model},
                                     .is_log2 = true})};
}

std::array<SvgPicture, 2> study_plots(const std::vector<StudyPoint>& points, const IdealFit& fit) {
  const StudyPoint& base = *std::min_element(
      points.begin(), points.end(),
      [](const StudyPoint& a, const StudyPoint& b) { return a.devices() < b.devices(); });
  const auto base_devices = static_cast<double>(base.devices());
  const auto speed_up = [&](const StudyPoint& point, double ms, double base_ms) {
    return base_devices * point.batch / base.batch * base_ms / ms;
  };
  StackPlot times{.title = "Step time, measured and fitted",
                  .value_name = "ms",
                  .parts = {{"measured", plot_color(0)}, {"fitted", plot_color(1)}},
                  .bars = {}};
  std::vector<PlotLine> lines{line_named("ideal: as many times the devices", 7),
                              line_named("best measured", 0), line_named("the same, fitted", 1)};
  lines[0].is_dashed = lines[2].is_dashed = true;
  lines[0].has_points = false;
  // Of each number of devices the layout that is quickest for its batch.
  std::map<index_t, const StudyPoint*> best;
  for (const StudyPoint& point : points) {
    times.bars.push_back({point.name, {point.measured_ms, 0.0}});
    times.bars.push_back({"", {0.0, fit.predict(point)}});
    const auto [entry, is_new] = best.try_emplace(point.devices(), &point);
    if (!is_new &&
        point.measured_ms / point.batch < entry->second->measured_ms / entry->second->batch)
      entry->second = &point;
  }
  for (const auto& [devices, point] : best) {
    for (PlotLine& line : lines) line.x.push_back(static_cast<double>(devices));
    lines[0].y.push_back(static_cast<double>(devices));
    lines[1].y.push_back(speed_up(*point, point->measured_ms, base.measured_ms));
    lines[2].y.push_back(speed_up(*point, fit.predict(*point), fit.predict(base)));
  }
  return {draw(times), draw(LinePlot{.title = "Speed-up",
                                     .x_name = "devices",
                                     .y_name = "speed-up",
                                     .lines = lines,
                                     .is_log2 = true})};
}

}  // namespace weft
