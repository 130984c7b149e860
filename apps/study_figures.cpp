#include "apps/study_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "apps/ideal_model.hpp"
#include "parallel/plan/balance.hpp"

namespace weft {

namespace {

using Json = nlohmann::ordered_json;

RowScaling scaling_of(const Plan& plan, const Plan& baseline, bool is_baseline) {
  if (is_baseline) return RowScaling::baseline;
  if (plan.batch.global == baseline.batch.global) return RowScaling::strong;
  const bool is_alike =
      plan.batch.global * baseline.layout.dp == baseline.batch.global * plan.layout.dp;
  return is_alike ? RowScaling::weak : RowScaling::other;
}

bool judges(const TargetPlan& accept) { return accept.is_set() && accept.split == "validation"; }

std::optional<double> metric_of(const LayoutRun& run, const TargetPlan& accept) {
  if (!judges(accept) || !run.metrics.is_object()) return std::nullopt;
  const auto found = run.metrics.find(accept.metric);
  if (found == run.metrics.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string bounds_text(const TargetPlan& accept) {
  std::string text = fmt::format("{} on {}", accept.metric, accept.split);
  if (accept.at_least) text += fmt::format(" of at least {:g}", *accept.at_least);
  if (accept.at_least && accept.at_most) text += " and";
  if (accept.at_most) text += fmt::format(" of at most {:g}", *accept.at_most);
  return text;
}

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

std::string metric_text(const StudyFigures& figures) {
  if (!figures.metric) return "-";
  return fmt::format("{:.4f} {}", *figures.metric, figures.is_accepted ? "yes" : "NO");
}

// Why no layout has a verdict; empty: all that were evaluated have one.
std::string missing_verdict(const LayoutTable& table) {
  const TargetPlan& accept = table.plan.task.accept;
  if (!accept.is_set()) return "";
  if (accept.split != "validation")
    return fmt::format("accepted ({}): not judged here: the {} part is for weft eval",
                       bounds_text(accept), accept.split);
  for (const LayoutRow& row : table.rows)
    if (study_figures(table, row).metric) return "";
  return fmt::format("accepted ({}): not judged; give --evaluate", bounds_text(accept));
}

}  // namespace

std::string name_of(RowScaling scaling) {
  switch (scaling) {
    case RowScaling::baseline:
      return "baseline";
    case RowScaling::strong:
      return "strong";
    case RowScaling::weak:
      return "weak";
    case RowScaling::other:
      break;
  }
  return "other";
}

bool is_within(const TargetPlan& accept, double value) {
  return (!accept.at_least || value >= *accept.at_least) &&
         (!accept.at_most || value <= *accept.at_most);
}

StudyFigures study_figures(const LayoutTable& table, const LayoutRow& row) {
  const RowFigures figures = table.figures(row);
  const LayoutRow& baseline = table.reference();
  const Plan& plan = row.layout.plan;
  StudyFigures all{};
  all.scaling = scaling_of(plan, baseline.layout.plan, &row == &baseline);
  all.batch = plan.batch.global;
  all.updates = static_cast<double>(baseline.layout.plan.batch.global) /
                static_cast<double>(plan.batch.global);
  all.least_ms = all.greatest_ms = row.runs.front().steps.median_ms();
  for (const LayoutRun& run : row.runs) {
    all.least_ms = std::min(all.least_ms, run.steps.median_ms());
    all.greatest_ms = std::max(all.greatest_ms, run.steps.median_ms());
    if (const std::optional<double> value = metric_of(run, table.plan.task.accept))
      all.metric = value;
  }
  all.device_s_per_step = static_cast<double>(row.num_ranks()) * figures.median_ms / 1000.0;
  all.ideal_busy = ideal_busy_share(plan.layout.pp, pipeline_microbatches(plan));
  const double work = figures.activity(Activity::forward) + figures.activity(Activity::backward);
  const double waiting =
      figures.activity(Activity::bubble) + figures.activity(Activity::communication);
  all.measured_busy = work + waiting > 0.0 ? work / (work + waiting) : 0.0;
  all.is_accepted = all.metric && is_within(table.plan.task.accept, *all.metric);
  return all;
}

void print_scaling(const LayoutTable& table, std::ostream& text) {
  std::size_t width = 7;  // "scaling"
  bool has_metric = false, has_weak = false;
  for (const LayoutRow& row : table.rows) {
    width = std::max(width, row.layout.name.size());
    const StudyFigures figures = study_figures(table, row);
    has_metric = has_metric || figures.metric;
    has_weak = has_weak || figures.updates != 1.0;
  }
  text << fmt::format("\n{:{}} {:>8} {:>6} {:>8} {:>9} {:>9} {:>8} {:>8} {:>6}{}\n", "scaling",
                      width, "kind", "batch", "updates", "least ms", "most ms", "dev-s", "busy",
                      "ideal", has_metric ? "  accepted" : "");
  for (const LayoutRow& row : table.rows) {
    const StudyFigures figures = study_figures(table, row);
    text << fmt::format("{:{}} {:>8} {:6} {:>7}% {:9.2f} {:9.2f} {:8.3f} {:>8} {:>6}{}\n",
                        row.layout.name, width, name_of(figures.scaling), figures.batch,
                        percent(figures.updates), figures.least_ms, figures.greatest_ms,
                        figures.device_s_per_step, percent(figures.measured_busy),
                        percent(figures.ideal_busy), has_metric ? "  " + metric_text(figures) : "");
  }
  text << "kind: strong, the baseline's global batch; weak, its batch a replica; updates: of an "
          "epoch, against it;\nleast, most: of the repeats' medians; dev-s: ranks x seconds of a "
          "step; busy: % of forward, backward,\nbubble and communication that the first two are; "
          "ideal: m / (m + p - 1)\n";
  const index_t base_ranks = table.reference().num_ranks();
  if (base_ranks > 1) {
    text << fmt::format("the baseline has {} ranks: no speed-up here is against a single device\n",
                        base_ranks);
  }
  if (has_weak) {
    text << "layouts with another batch are another optimization: the learning rate is the plan's, "
            "and equal bits\nare expected of layouts with equal batch only\n";
  }
  const std::string missing = missing_verdict(table);
  if (!missing.empty()) text << missing << '\n';
  if (has_metric) text << "accepted: " << bounds_text(table.plan.task.accept) << '\n';
}

Json scaling_json(const LayoutTable& table, const LayoutRow& row) {
  const StudyFigures figures = study_figures(table, row);
  Json json{{"scaling", name_of(figures.scaling)},
            {"global_batch", figures.batch},
            {"updates_per_epoch", figures.updates},
            {"repeat_medians_ms", {{"least", figures.least_ms}, {"greatest", figures.greatest_ms}}},
            {"device_s_per_step", figures.device_s_per_step},
            {"ideal_busy_percent", 100 * figures.ideal_busy},
            {"busy_percent", 100 * figures.measured_busy}};
  if (row.runs.back().metrics.is_object()) json["validation"] = row.runs.back().metrics;
  if (figures.metric) json["accepted"] = figures.is_accepted;
  return json;
}

Json acceptance_json(const LayoutTable& table) {
  const TargetPlan& accept = table.plan.task.accept;
  if (!accept.is_set()) return nullptr;
  Json json{{"metric", accept.metric}, {"split", accept.split}};
  if (accept.at_least) json["at_least"] = *accept.at_least;
  if (accept.at_most) json["at_most"] = *accept.at_most;
  bool is_judged = !table.rows.empty(), is_met = true;
  for (const LayoutRow& row : table.rows) {
    const StudyFigures figures = study_figures(table, row);
    is_judged = is_judged && figures.metric.has_value();
    is_met = is_met && figures.is_accepted;
  }
  json["all_accepted"] = is_judged ? Json(is_met) : Json(nullptr);
  return json;
}

}  // namespace weft
