// The section of a report that tells how long runs of one plan with different seeds took to its
// target (report_sections.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/rank_parts.hpp"
#include "apps/report_sections.hpp"
#include "core/error.hpp"
#include "io/plan_file.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

struct SeedRun {
  const RunRecords* run;
  std::uint64_t seed = 0;
  const Json* target = nullptr;  // what its summary says; none: it has not ended

  bool reached() const { return target && target->value("reached", false); }
  // Whether going on could still bring it there.
  bool is_open() const {
    return !reached() && (!target || run->summary.value("stopped", Json(nullptr)).is_string());
  }
  std::optional<double> at(const char* key) const {
    if (!reached() || !target->contains(key) || !target->at(key).is_number()) return std::nullopt;
    return target->at(key).get<double>();
  }
};

struct SeedGroup {
  std::string goal, layout;
  std::vector<SeedRun> runs;

  std::vector<const SeedRun*> judged() const {
    std::vector<const SeedRun*> all;
    for (const SeedRun& run : runs)
      if (!run.is_open()) all.push_back(&run);
    return all;
  }
};

std::string goal_of(const TargetPlan& target) {
  return target.smaller_is_better()
             ? fmt::format("{} at most {}", target.metric, *target.at_most)
             : fmt::format("{} at least {}", target.metric, *target.at_least);
}

// Runs whose plans differ in the seed alone, one of each seed: with the same one they are the same
// steps. A plan that this weft cannot read is in no group, nor is an asynchronous run.
std::vector<SeedGroup> groups_of(const std::vector<RunRecords>& runs) {
  std::map<std::string, std::size_t> index;
  std::vector<SeedGroup> groups;
  for (const RunRecords& run : runs) {
    if (run.is_async) continue;
    Plan plan;
    try {
      plan = parse_plan(run.plan, "plan.toml");
    } catch (const Error&) {
      continue;
    }
    if (!plan.task.target.is_set()) continue;
    SeedRun one{.run = &run, .seed = plan.numerics.seed};
    if (run.summary.is_object() && run.summary.value("target", Json(nullptr)).is_object())
      one.target = &run.summary["target"];
    plan.numerics.seed = 1;
    plan.name.clear();
    plan.task.path.clear();
    const auto [entry, is_new] =
        index.emplace(plan_fingerprint(plan, FingerprintOf::all), groups.size());
    if (is_new)
      groups.push_back({.goal = goal_of(plan.task.target),
                        .layout = grid_label(plan.layout.tp, plan.layout.dp, plan.layout.pp),
                        .runs = {}});
    std::vector<SeedRun>& group = groups[entry->second].runs;
    const auto is_same = [&](const SeedRun& other) { return other.seed == one.seed; };
    if (std::none_of(group.begin(), group.end(), is_same)) group.push_back(one);
  }
  std::erase_if(groups, [](const SeedGroup& group) { return group.runs.size() < 2; });
  return groups;
}

// Of all judged runs, where one that did not reach it counts as later than all that did.
std::string median_of(const SeedGroup& group, const char* key, const char* format) {
  std::vector<double> values;
  for (const SeedRun& run : group.runs)
    if (const auto value = run.at(key)) values.push_back(*value);
  std::sort(values.begin(), values.end());
  const std::size_t all = group.judged().size();
  if (values.empty() || all / 2 >= values.size()) return "none";
  const double median =
      all % 2 == 1 ? values[all / 2] : (values[all / 2 - 1] + values[all / 2]) / 2;
  return fmt::format(fmt::runtime(format), median);
}

std::string range_of(const SeedGroup& group, const char* key, const char* format) {
  double least = 0.0, most = 0.0;
  bool is_first = true;
  for (const SeedRun& run : group.runs) {
    const auto value = run.at(key);
    if (!value) continue;
    least = is_first ? *value : std::min(least, *value);
    most = is_first ? *value : std::max(most, *value);
    is_first = false;
  }
  if (is_first) return "-";
  return fmt::format(fmt::runtime(format), least) + " to " +
         fmt::format(fmt::runtime(format), most);
}

ReportTable table_of_groups(const std::vector<SeedGroup>& groups) {
  ReportTable table{
      {"target", "layout", "runs", "reached", "still open", "steps, median", "least to most",
       "s of steps, median", "least to most", "s in all, median", "least to most"},
      {}};
  for (const SeedGroup& group : groups) {
    const std::size_t judged = group.judged().size();
    const auto reached = std::count_if(group.runs.begin(), group.runs.end(),
                                       [](const SeedRun& run) { return run.reached(); });
    std::vector<std::string> row{group.goal, group.layout, fmt::format("{}", group.runs.size()),
                                 fmt::format("{} of {}", reached, judged),
                                 fmt::format("{}", group.runs.size() - judged)};
    for (const auto& [key, format] :
         {std::pair{"step", "{:.0f}"}, {"training_s", "{:.2f}"}, {"elapsed_s", "{:.2f}"}}) {
      row.push_back(median_of(group, key, format));
      row.push_back(range_of(group, key, format));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

ReportTable table_of_runs(const std::vector<SeedGroup>& groups) {
  ReportTable table{
      {"run", "layout", "seed", "reached", "at step", "epochs", "s of steps", "s in all", "best"},
      {}};
  for (const SeedGroup& group : groups) {
    for (const SeedRun& run : group.runs) {
      const auto cell = [&](const char* key, const char* format) {
        const auto value = run.at(key);
        return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
      };
      const Json best = run.target ? run.target->value("best", Json(nullptr)) : Json(nullptr);
      table.rows.push_back({run.run->name, group.layout, fmt::format("{}", run.seed),
                            run.reached()   ? "yes"
                            : run.is_open() ? "not yet: no end, or stopped"
                                            : "no",
                            cell("step", "{:.0f}"), cell("epochs", "{:.2f}"),
                            cell("training_s", "{:.2f}"), cell("elapsed_s", "{:.2f}"),
                            best.is_number() ? fmt::format("{:.4f}", best.get<double>()) : "-"});
    }
  }
  return table;
}

// How many runs had reached it by then.
SvgPicture picture_of(const std::vector<SeedGroup>& groups) {
  LinePlot plot{.title = "Runs that reached the target",
                .x_name = "s with evaluation and saving",
                .y_name = "runs",
                .lines = {}};
  double last = 0.0;
  for (const SeedGroup& group : groups)
    for (const SeedRun& run : group.runs) last = std::max(last, run.at("elapsed_s").value_or(0.0));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<double> times;
    for (const SeedRun& run : groups[i].runs)
      if (const auto value = run.at("elapsed_s")) times.push_back(*value);
    std::sort(times.begin(), times.end());
    PlotLine line{.name = groups[i].layout + ", " + groups[i].goal,
                  .color = plot_color(i),
                  .x = {0.0},
                  .y = {0.0},
                  .has_points = false};
    double count = 0.0;
    for (const double time : times) {
      line.x.insert(line.x.end(), {time, time});
      line.y.insert(line.y.end(), {count, count + 1});
      ++count;
    }
    line.x.push_back(last);
    line.y.push_back(count);
    plot.lines.push_back(std::move(line));
  }
  return draw(plot);
}

}  // namespace

std::optional<ReportSection> seed_section(const std::vector<RunRecords>& runs) {
  const std::vector<SeedGroup> groups = groups_of(runs);
  if (groups.empty()) return std::nullopt;
  return ReportSection{
      "Time to the target over seeds",
      {std::string(
           "Runs of one plan that differ in numerics.seed alone. A target is reached at the first "
           "of two evaluations one after the other that both reach it. Medians are of all runs "
           "that ended, one that did not reach it counting as later than all that did, so that "
           "there is none where half or fewer reached it; runs that were stopped or have no end "
           "are open and not counted."),
       table_of_groups(groups), picture_of(groups), table_of_runs(groups)}};
}

}  // namespace weft
