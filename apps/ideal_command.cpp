#include "apps/ideal_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "apps/ideal_fit.hpp"
#include "apps/ideal_plot.hpp"
#include "core/error.hpp"
#include "io/file.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

IdealModel model_of(const IdealOptions& options) {
  IdealModel model = options.model;
  model.scaling = parse_scaling(options.scaling);
  return model;
}

// One device is always there: all others are compared with it.
std::vector<IdealStep> steps_of(const IdealModel& model, std::vector<index_t> ranks,
                                bool are_given) {
  ranks.push_back(1);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::vector<IdealStep> steps;
  for (const index_t devices : ranks) {
    // Of the usual numbers those that the stages divide.
    if (!are_given && devices > 1 && devices % std::max<index_t>(1, model.stages) != 0) continue;
    const std::string fault = fault_of(model, devices);
    require(fault.empty(), ExitCode::usage, fault);
    steps.push_back(ideal_step(model, devices));
  }
  return steps;
}

void print_steps(const IdealModel& model, const std::vector<IdealStep>& steps, std::ostream& text) {
  text << fmt::format(
      "weft ideal: {:g} ms of computing shared out, {:g} ms fixed, {:g} ms of communication, {:g} "
      "ms of it hidden",
      model.compute_ms, model.fixed_ms, model.communication_ms, model.hidden_ms);
  if (model.split_ms > 0) text << fmt::format("; splitting costs {:g} ms", model.split_ms);
  if (model.stages > 1) {
    text << fmt::format("\n{} stages and {} microbatches: busy {:.1f} % of the time", model.stages,
                        model.microbatches,
                        100 * ideal_busy_share(model.stages, model.microbatches));
  }
  text << fmt::format("\n{} scaling: {}\n\n", name_of(model.scaling),
                      model.scaling == Scaling::strong
                          ? fmt::format("{:g} samples a step on any number of devices", model.batch)
                          : fmt::format("{:g} samples a step for each replica", model.batch));
  text << fmt::format("{:>7} {:>7} {:>9} {:>8} {:>8} {:>8} {:>9} {:>10} {:>8} {:>7} {:>9} {:>7}\n",
                      "devices", "batch", "computing", "bubble", "fixed", "exposed", "step ms",
                      "samples/s", "speed-up", "effic.", "device-s", "updates");
  for (const IdealStep& step : steps) {
    text << fmt::format(
        "{:7} {:7g} {:9.2f} {:8.2f} {:8.2f} {:8.2f} {:9.2f} {:10.0f} {:8.2f} {:6.1f}% {:9.3f} "
        "{:6.1f}%\n",
        step.devices, step.batch, step.compute_ms, step.bubble_ms, step.fixed_ms, step.exposed_ms,
        step.step_ms, step.samples_per_s, step.speed_up, 100 * step.efficiency, step.device_s,
        100 * step.updates);
  }
  text << "computing to exposed add up to step ms; exposed: communication that is not hidden; "
          "speed-up: of\nsamples/s, against one device; effic.: by devices; device-s: devices x "
          "seconds of a step; updates:\nof an epoch, against one device. An ideal: no device, "
          "network or loader is forecast by it\n";
}

Json step_json(const IdealStep& step) {
  return {{"devices", step.devices},       {"batch", step.batch},
          {"compute_ms", step.compute_ms}, {"bubble_ms", step.bubble_ms},
          {"fixed_ms", step.fixed_ms},     {"exposed_ms", step.exposed_ms},
          {"step_ms", step.step_ms},       {"samples_per_s", step.samples_per_s},
          {"speed_up", step.speed_up},     {"efficiency", step.efficiency},
          {"device_s", step.device_s},     {"updates_per_epoch", step.updates}};
}

void check_local(const std::vector<double>& local_ms) {
  for (const double ms : local_ms) {
    require(std::isfinite(ms) && ms >= 0.0, ExitCode::usage,
            fmt::format("--local: expected milliseconds of 0 or more; found {:g}", ms));
  }
}

Json say_waits(const std::vector<double>& local_ms, std::ostream& text) {
  const SlowestRank slowest = slowest_of(local_ms);
  text << fmt::format("\n{:>5} {:>9} {:>9}\n", "rank", "local ms", "waits ms");
  for (std::size_t rank = 0; rank < local_ms.size(); ++rank) {
    text << fmt::format("{:5} {:9.2f} {:9.2f}{}\n", rank, local_ms[rank], slowest.waits[rank],
                        rank == slowest.rank ? "  the slowest" : "");
  }
  text << fmt::format(
      "a synchronous update waits for rank {}: {:g} ms, where equally quick ranks would take "
      "{:g}\n",
      slowest.rank, slowest.step_ms, slowest.mean_ms);
  return {{"slowest_rank", slowest.rank},
          {"step_ms", slowest.step_ms},
          {"mean_ms", slowest.mean_ms},
          {"waits_ms", slowest.waits}};
}

// What is said of a study, for people and as JSON.
Json say_fit(const std::vector<StudyPoint>& points, const IdealFit& fit, std::ostream& text) {
  Json json, terms, rows = Json::array();
  for (std::size_t i = 0; i < num_fit_terms; ++i)
    terms[std::string(fit_term_names[i]) + "_ms"] = fit.ms[i];
  std::size_t width = 6;
  for (const StudyPoint& point : points) width = std::max(width, point.name.size());
  text << fmt::format("weft ideal, fitted to {} layouts: {} ms\n\n", points.size(), fit.text());
  text << fmt::format("{:{}} {:>7} {:>11} {:>9} {:>7} {:>11}\n", "layout", width, "devices",
                      "measured ms", "predicted", "error", "without it");
  const std::vector<FittedPoint> fitted = judge_fit(fit, points);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const StudyPoint& point = points[i];
    const auto& [predicted, error, forecast] = fitted[i];
    text << fmt::format("{:{}} {:7} {:11.2f} {:9.2f} {:+6.1f}% {:>11}\n", point.name, width,
                        point.devices(), point.measured_ms, predicted, 100 * error,
                        forecast ? fmt::format("{:.2f}", *forecast) : "-");
    rows.push_back({{"name", point.name},
                    {"devices", point.devices()},
                    {"measured_ms", point.measured_ms},
                    {"predicted_ms", predicted},
                    {"error_percent", 100 * error},
                    {"without_it_ms", forecast ? Json(*forecast) : Json(nullptr)}});
  }
  text << fmt::format(
      "compute: by devices and by the pipeline's ideal busy share; fixed: on each; tp, dp, pp: "
      "where that axis\nhas two ranks or more; chosen for the least relative errors, none below 0. "
      "Largest error {:.1f} %.\nwithout it: what a fit to the other layouts says of this one; -: "
      "they know nothing of one of its axes\n",
      100 * largest_error(fitted));
  const std::string warning = fit.warning(points.size());
  if (!warning.empty()) text << warning << '\n';
  json["terms"] = terms;
  json["rows"] = rows;
  json["largest_error_percent"] = 100 * largest_error(fitted);
  return json;
}

}  // namespace

Json model_json(const IdealModel& model) {
  return {{"compute_ms", model.compute_ms},
          {"fixed_ms", model.fixed_ms},
          {"communication_ms", model.communication_ms},
          {"hidden_ms", model.hidden_ms},
          {"split_ms", model.split_ms},
          {"batch", model.batch},
          {"stages", model.stages},
          {"microbatches", model.microbatches},
          {"busy_percent", 100 * ideal_busy_share(model.stages, model.microbatches)},
          {"scaling", name_of(model.scaling)}};
}

int ideal(const IdealOptions& options, std::ostream& text, std::ostream& out) {
  const IdealModel model = model_of(options);
  check_local(options.local_ms);
  require(options.svg.empty() || options.svg.ends_with(".svg"), ExitCode::usage,
          fmt::format("--svg: expected a name that ends with .svg; found {0}. Give {0}.svg",
                      options.svg));
  Json json;
  std::array<SvgPicture, 2> plots;
  if (!options.study.empty()) {
    const std::vector<StudyPoint> points = read_study_file(options.study);
    const IdealFit fit = fit_ideal(points);
    json["study"] = options.study;
    json["fit"] = say_fit(points, fit, text);
    plots = study_plots(points, fit);
  } else {
    const std::vector<IdealStep> steps =
        steps_of(model, options.ranks, options.ranks != IdealOptions{}.ranks);
    print_steps(model, steps, text);
    json["model"] = model_json(model);
    json["steps"] = Json::array();
    for (const IdealStep& step : steps) json["steps"].push_back(step_json(step));
    plots = ideal_plots(steps);
  }
  if (!options.local_ms.empty()) json["slowest"] = say_waits(options.local_ms, text);
  if (!options.svg.empty()) {
    write_file(options.svg, svg_element(side_by_side(plots[0], plots[1])));
    text << "plot " << options.svg << '\n';
  }
  text << std::flush;
  if (options.json) out << json.dump() << std::endl;
  return static_cast<int>(ExitCode::done);
}

}  // namespace weft
