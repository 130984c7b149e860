// The sections of a report that tell of runs (report_sections.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/leak_mark.hpp"
#include "apps/rank_parts.hpp"
#include "apps/report_sections.hpp"
#include "apps/run_history.hpp"
#include "apps/skipped_rows.hpp"
#include "apps/step_statistics.hpp"
#include "core/arena.hpp"
#include "core/trace.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

constexpr double mib = 1024.0 * 1024.0;
// A curve has no more points than a picture has pixels to tell them apart.
constexpr std::size_t most_points = 200;

std::string number_text(const Json& object, const std::string& key, const char* format) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end() || !found->is_number()) return "-";
  return fmt::format(fmt::runtime(format), found->get<double>());
}

// Steps that the run's last process measured, as its summary counts them; of a run without one all
// but the usual warm-up.
std::size_t first_measured(const RunRecords& run) {
  if (run.summary.is_null()) return StepStatistics::usual_warm_up(run.steps.size());
  const index_t last_warm_up = run.summary.value("resumed_from_step", index_t{0}) +
                               run.summary["step_ms"].value("warm_up_steps", index_t{0});
  const auto first = std::find_if(run.steps.begin(), run.steps.end(),
                                  [&](const StepLine& line) { return line.step > last_warm_up; });
  return static_cast<std::size_t>(first - run.steps.begin());
}

StepStatistics statistics_of(const RunRecords& run) {
  StepStatistics times(0);
  for (std::size_t i = first_measured(run); i < run.steps.size(); ++i)
    times.add(run.steps[i].step_ms, run.steps[i].samples);
  return times;
}

std::string state_of(const RunRecords& run) {
  if (run.summary.is_null()) return "no end recorded";
  const Json stopped = run.summary.value("stopped", Json(nullptr));
  return stopped.is_string() ? "stopped: " + stopped.get<std::string>() : "done";
}

std::string layout_text(const RunRecords& run) {
  if (run.summary.is_null()) return "-";
  const Json& layout = run.summary["layout"];
  return grid_label(layout.value("tp", 1), layout.value("dp", 1), layout.value("pp", 1));
}

Json last_evaluation(const RunRecords& run) {
  return run.evaluations.empty() ? Json(nullptr) : run.evaluations.back();
}

ReportTable table_of_runs(const std::vector<RunRecords>& runs) {
  ReportTable table{
      {"run", "end", "layout", "steps", "training loss", "validation loss", "accuracy", "macro F1",
       "step ms, median", "P95", "samples/s", "peak MiB", "test uses"},
      {}};
  for (const RunRecords& run : runs) {
    const StepStatistics times = statistics_of(run);
    const Json evaluation = last_evaluation(run);
    const std::string peak =
        run.summary.is_null() ? "-"
                              : fmt::format("{:.1f}", run.summary.value("peak_bytes", 0.0) / mib);
    table.rows.push_back(
        {run.name, state_of(run), layout_text(run),
         fmt::format("{}", run.steps.empty() ? 0 : run.steps.back().step),
         run.steps.empty() ? "-" : fmt::format("{:.4f}", run.steps.back().loss),
         number_text(evaluation, "loss", "{:.4f}"), number_text(evaluation, "accuracy", "{:.4f}"),
         number_text(evaluation, "macro_f1", "{:.4f}"), fmt::format("{:.2f}", times.median_ms()),
         fmt::format("{:.2f}", times.p95_ms()), fmt::format("{:.0f}", times.samples_per_second()),
         peak, fmt::format("{}", run.test_uses.size())});
  }
  return table;
}

// Means of as many steps as it takes to have few points.
PlotLine training_curve(const RunRecords& run, std::size_t color) {
  PlotLine line{.name = run.name, .color = plot_color(color), .has_points = false};
  const std::size_t bin = (run.steps.size() + most_points - 1) / most_points;
  for (std::size_t begin = 0; begin < run.steps.size(); begin += bin) {
    const std::size_t end = std::min(begin + bin, run.steps.size());
    double loss = 0.0, step = 0.0;
    for (std::size_t i = begin; i < end; ++i) {
      loss += run.steps[i].loss;
      step += static_cast<double>(run.steps[i].step);
    }
    line.x.push_back(step / static_cast<double>(end - begin));
    line.y.push_back(loss / static_cast<double>(end - begin));
  }
  return line;
}

PlotLine evaluation_curve(const RunRecords& run, const char* metric, const std::string& name,
                          std::size_t color) {
  PlotLine line{.name = name, .color = plot_color(color)};
  for (const Json& evaluation : run.evaluations) {
    const auto found = evaluation.find(metric);
    if (found == evaluation.end() || !found->is_number()) continue;
    line.x.push_back(evaluation.value("step", 0.0));
    line.y.push_back(found->get<double>());
  }
  return line;
}

std::vector<ReportBlock> curves_of(const std::vector<RunRecords>& runs) {
  LinePlot training{.title = "Training loss", .x_name = "step", .y_name = "loss", .lines = {}};
  LinePlot validation{.title = "Validation loss", .x_name = "step", .y_name = "loss", .lines = {}};
  LinePlot accuracy{
      .title = "Validation accuracy", .x_name = "step", .y_name = "share", .lines = {}};
  LinePlot macro_f1{.title = "Validation macro F1", .x_name = "step", .y_name = "F1", .lines = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    training.lines.push_back(training_curve(runs[i], i));
    validation.lines.push_back(evaluation_curve(runs[i], "loss", runs[i].name, i));
    accuracy.lines.push_back(evaluation_curve(runs[i], "accuracy", runs[i].name, i));
    macro_f1.lines.push_back(evaluation_curve(runs[i], "macro_f1", runs[i].name, i));
  }
  return {draw(training), draw(validation), draw(accuracy), draw(macro_f1)};
}

// The numbers under `key` of each rank.
RankParts parts_of(const Json& ranks, const char* key, double unit) {
  std::vector<std::string> labels;
  std::vector<NamedNumbers> numbers;
  for (const Json& rank : ranks) {
    labels.push_back(
        rank_label(labels.size(), rank.value("tp", 0), rank.value("dp", 0), rank.value("pp", 0)));
    NamedNumbers& own = numbers.emplace_back();
    for (const auto& [name, value] : rank.at(key).items()) own.emplace_back(name, value);
  }
  return rank_parts(std::move(labels), numbers, unit);
}

ReportSection step_section(const RunRecords& run) {
  const StepStatistics times = statistics_of(run);
  Histogram plot{.title = "Step time",
                 .value_name = "ms",
                 .values = {},
                 .marks = {{fmt::format("median {:.2f} ms", times.median_ms()), times.median_ms()},
                           {fmt::format("P95 {:.2f} ms", times.p95_ms()), times.p95_ms()}}};
  for (std::size_t i = first_measured(run); i < run.steps.size(); ++i)
    plot.values.push_back(run.steps[i].step_ms);
  return {"Step time",
          {fmt::format("{} steps after {} of warm-up: median {:.2f} ms, P95 {:.2f} ms (95 % of the "
                       "steps take no longer), {:.0f} samples/s, without padding. Evaluation and "
                       "saving are not in it.",
                       plot.values.size(), run.steps.size() - plot.values.size(), times.median_ms(),
                       times.p95_ms(), times.samples_per_second()),
           draw(plot)},
          3};
}

ReportSection account_section(const RunRecords& run) {
  const Json& ranks = run.summary["ranks"];
  const double steps = std::max(1.0, run.summary["step_ms"].value("measured_steps", 1.0));
  const RankParts parts = parts_of(ranks, "ms", steps);
  return {
      "Where the time goes",
      {std::string("Each rank's mean step, in ms, by what its main thread did; the parts add up "
                   "to the wall time. communication is what was waited for, not what went on "
                   "behind the computing."),
       draw(stack_of("A step of each rank", "ms", parts)), table_of(parts, "step ms")},
      3};
}

ReportSection memory_section(const RunRecords& run) {
  const Json& ranks = run.summary["ranks"];
  const RankParts parts = parts_of(ranks, "peak_bytes_by_kind", mib);
  ReportTable table = table_of(parts, "peak MiB");
  table.header.emplace_back("in phase");
  for (std::size_t i = 0; i < ranks.size(); ++i)
    table.rows[i].push_back(ranks[i].value("peak_phase", ""));
  return {"Memory at the peak",
          {std::string("MiB in use at the moment of each rank's peak, and the phase in which it "
                       "was."),
           draw(stack_of("Memory at the peak", "MiB", parts)), table},
          3};
}

ReportSection seconds_section(const RunRecords& run) {
  ReportTable table{{"part", "seconds"}, {}};
  for (const char* key :
       {"start_s", "training_s", "evaluation_s", "checkpoint_s", "finish_s", "total_s"})
    table.rows.push_back(
        {std::string(key, std::string(key).size() - 2), number_text(run.summary, key, "{:.2f}")});
  std::vector<ReportBlock> blocks{
      std::string("By rank 0's clock, of the process that ended the run."), table};
  const std::string target = target_text(run.summary.value("target", Json(nullptr)));
  if (!target.empty()) blocks.emplace_back(target + ".");
  return {"Time of the run", blocks, 3};
}

std::optional<ReportSection> classes_section(const RunRecords& run) {
  const Json evaluation = last_evaluation(run);
  if (!evaluation.is_object() || !evaluation.contains("per_class") ||
      evaluation["per_class"].empty())
    return std::nullopt;
  ReportTable table{{"class", "precision", "recall", "F1", "samples"}, {}};
  for (const Json& one : evaluation["per_class"]) {
    const Json& name = one.at("class");
    table.rows.push_back({name.is_string() ? name.get<std::string>() : name.dump(),
                          number_text(one, "precision", "{:.4f}"),
                          number_text(one, "recall", "{:.4f}"), number_text(one, "f1", "{:.4f}"),
                          number_text(one, "support", "{:.0f}")});
  }
  return ReportSection{
      fmt::format("Classes at step {}", number_text(evaluation, "step", "{:.0f}")),
      {std::string("On the validation part, from one confusion matrix over all ranks; - where it "
                   "is 0/0."),
       table},
      3};
}

ReportSection test_section(const RunRecords& run) {
  if (run.test_uses.empty()) return {"Test part", {std::string("It was not used by this run.")}, 3};
  ReportTable table{{"use", "time", "step", "accuracy", "macro F1"}, {}};
  for (std::size_t i = 0; i < run.test_uses.size(); ++i) {
    const Json& use = run.test_uses[i];
    table.rows.push_back(
        {fmt::format("{}", i + 1), use.value("time", "-"), number_text(use, "step", "{:.0f}"),
         number_text(use, "accuracy", "{:.4f}"), number_text(use, "macro_f1", "{:.4f}")});
  }
  return {"Test part",
          {fmt::format("Used {} time{}. Figures that were seen again and again are no final "
                       "confirmation any more.",
                       run.test_uses.size(), run.test_uses.size() == 1 ? "" : "s"),
           table},
          3};
}

std::optional<ReportSection> event_section(const RunRecords& run) {
  if (run.events.empty()) return std::nullopt;
  ReportTable table{{"event"}, {}};
  for (const Json& event : run.events) table.rows.push_back({event.dump()});
  return ReportSection{"What happened to the run", {table}, 3};
}

ReportSection result_section(const RunRecords& run) {
  ReportTable table{{"what", "is"}, {}};
  for (const char* key : {"state_hash", "loss_hash", "plan_hash"})
    table.rows.push_back({key, run.summary.value(key, "-")});
  ReportTable replicas{{"replica", "updates", "hash of its samples"}, {}};
  for (const Json& replica : run.summary.value("replicas", Json::array()))
    replicas.rows.push_back({number_text(replica, "dp", "{:.0f}"),
                             number_text(replica, "updates", "{:.0f}"),
                             replica.value("samples_hash", "-")});
  return {"Result, samples and versions",
          {table, replicas, ReportListing{run.summary.value("fingerprint", "not recorded")}},
          3};
}

// What is to be known before a figure of the run is read. By the resolved plan, which is there from
// the run's first step on.
std::vector<ReportBlock> marks_of(const RunRecords& run) {
  std::vector<ReportBlock> marks;
  if (run.plan.find("\nallow_leak = true\n") != std::string::npos) {
    TaskPlan leaking;
    leaking.dataset = "bank";
    leaking.allow_leak = true;
    marks.emplace_back(fmt::format("{}: {}.", run.name, leak_mark(leaking)));
  }
  if (run.is_async) {
    const Json objective = run.summary.is_object() ? run.summary.value("objective", Json()) : Json();
    marks.emplace_back(fmt::format("{}: {}.", run.name,
                                   objective.is_string() ? objective.get<std::string>()
                                                         : "asynchronous updates: another "
                                                           "optimization than the synchronous one"));
  }
  const std::string skipped = skipped_text(run.summary);
  if (!skipped.empty()) marks.emplace_back(fmt::format("{}: {}.", run.name, skipped));
  return marks;
}

void add_run(const RunRecords& run, std::vector<ReportSection>& sections) {
  const auto add = [&](std::optional<ReportSection> section) {
    if (section) sections.push_back(std::move(*section));
  };
  const bool has_end = run.summary.is_object();
  sections.push_back(
      {"Run " + run.name,
       {fmt::format("{}: {}{}", run.folder, state_of(run),
                    has_end ? "" : ". Its ranks' time and memory are recorded at the end")}});
  add(step_section(run));
  if (has_end && !run.summary["ranks"].empty()) {
    add(account_section(run));
    add(memory_section(run));
  }
  if (has_end) add(seconds_section(run));
  add(classes_section(run));
  add(test_section(run));
  add(event_section(run));
  if (has_end) add(result_section(run));
}

}  // namespace

std::vector<ReportSection> run_sections(const std::vector<RunRecords>& runs) {
  std::vector<ReportBlock> blocks;
  for (const RunRecords& run : runs) {
    for (ReportBlock& mark : marks_of(run)) blocks.push_back(std::move(mark));
  }
  blocks.emplace_back(table_of_runs(runs));
  for (ReportBlock& curve : curves_of(runs)) blocks.push_back(std::move(curve));
  std::vector<ReportSection> sections{{runs.size() == 1 ? "The run" : "The runs", blocks}};
  for (const RunRecords& run : runs) add_run(run, sections);
  return sections;
}

ReportSection plan_section(const std::vector<RunRecords>& runs) {
  ReportSection section{runs.size() == 1 ? "Plan, resolved" : "Plans, resolved", {}};
  for (const RunRecords& run : runs) {
    if (runs.size() > 1) section.blocks.emplace_back("Of " + run.name + ":");
    section.blocks.emplace_back(ReportListing{run.plan});
  }
  return section;
}

}  // namespace weft
