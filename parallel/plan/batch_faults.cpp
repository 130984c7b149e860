// Faults of the batch against lanes and the data set, of the run's length, name and target.
#include <algorithm>

#include "parallel/plan/rule_faults.hpp"

namespace weft::plan_rules {

namespace {

// Global batches near the plan's, with its microbatch.
void add_global(const Question& question, Fixes& fixes) {
  const Plan& plan = question.plan;
  Plan trial = plan;
  add_nearest(fixes, "batch.global", trial.batch.global, plan.batch.micro * plan.num_lanes(),
              most_global(plan), [] { return true; });
}

// Where no global batch fits the split with this microbatch, both change together.
void add_smaller_batch(const Plan& plan, Fixes& fixes) {
  const index_t micro = std::min(plan.batch.micro, most_global(plan) / plan.num_lanes());
  if (micro < 1) return;
  const index_t step = micro * plan.num_lanes();
  const index_t global = std::clamp(plan.batch.global, step, most_global(plan)) / step * step;
  fixes.push_back({{"batch.global", text_of(global)}, {"batch.micro", text_of(micro)}});
}

Fixes batch_fixes(const Question& question) {
  const Plan& plan = question.plan;
  Fixes fixes;
  Plan trial = plan;
  const auto legal = [&] { return question.is_mended_by(trial); };
  add_global(question, fixes);
  if (plan.batch.global % plan.num_lanes() == 0) {
    add_nearest(fixes, "batch.micro", trial.batch.micro, 1,
                std::min(plan.batch.global, range_of("batch.micro").most), legal);
  } else if (plan.is_exact()) {
    add_nearest(fixes, "numerics.lanes", trial.numerics.lanes, legal);
  } else {
    for (PlanFix& fix : axis_fixes(question, "layout.dp", &LayoutPlan::dp)) {
      fixes.push_back(std::move(fix));
    }
  }
  if (fixes.empty()) add_smaller_batch(plan, fixes);
  // More lanes than samples: only padded batches are left.
  if (fixes.empty()) {
    fixes.push_back({{"batch.global", text_of(plan.num_lanes())},
                     {"batch.micro", "1"},
                     {"batch.last", "\"pad\""}});
  }
  return fixes;
}

}  // namespace

PlanFault batch_fault(const Question& question) {
  const Plan& plan = question.plan;
  const std::string expected =
      fmt::format("micro {} x lanes {} x a whole number of microbatches per lane, a multiple of {}",
                  plan.batch.micro, plan.num_lanes(), plan.batch.micro * plan.num_lanes());
  return make_fault("batch.global", expected, text_of(plan.batch.global), batch_fixes(question));
}

PlanFault split_fault(const Question& question) {
  const Plan& plan = question.plan;
  Fixes fixes;
  add_global(question, fixes);
  if (fixes.empty()) add_smaller_batch(plan, fixes);
  fixes.push_back({{"batch.last", "\"pad\""}});
  return make_fault(
      "batch.global",
      fmt::format("at most the {} samples of task.split.train, or no step is left after the drop",
                  plan.task.train),
      text_of(plan.batch.global), std::move(fixes));
}

PlanFault run_fault(const Question& question) {
  const bool both = question.plan.run.steps.has_value();
  PlanFault fault =
      make_fault("run.steps", "either run.steps or run.epochs",
                 both ? "both: remove one" : "neither: set one, such as run.epochs = 10", {});
  if (!both) fault.fixes = {{{"run.epochs", "10"}}, {{"run.steps", "1000"}}};
  return fault;
}

// The value that the metric is to reach, on the side on which it is better.
PlanFault target_fault(const Question& question) {
  const TargetPlan& target = question.plan.task.target;
  const char* side = target.smaller_is_better() ? "task.target.at_most" : "task.target.at_least";
  const char* example = target.smaller_is_better() ? "1.2" : "0.6";
  std::string found;
  if (target.at_least) found = fmt::format("at_least = {}", number_text(*target.at_least));
  if (target.at_most)
    found +=
        fmt::format("{}at_most = {}", found.empty() ? "" : " and ", number_text(*target.at_most));
  if (found.empty()) found = "neither";
  if (!target.is_set()) {
    return make_fault("task.target.metric", "a metric for the value that it is to reach",
                      fmt::format("\"none\" with {}", found), {});
  }
  Fixes fixes;
  if (!target.at_least && !target.at_most) fixes = {{{side, example}}};
  PlanFault fault = make_fault(
      side, fmt::format("{} alone for the metric {}, such as {}", side, target.metric, example),
      found, fixes);
  return fault;
}

PlanFault accept_fault(const Question& question) {
  const TargetPlan& accept = question.plan.task.accept;
  if (!accept.is_set()) {
    return make_fault("task.accept.metric", "a metric for the range that is to be reached",
                      "\"none\" with a bound", {});
  }
  const char* bound = accept.smaller_is_better() ? "task.accept.at_most" : "task.accept.at_least";
  const char* example = accept.smaller_is_better() ? "1.2" : "0.6";
  return make_fault(
      bound, fmt::format("the least or the most {} that is accepted, or both", accept.metric),
      "neither", {{{bound, example}}});
}

PlanFault metrics_fault(const Question& question) {
  const TaskPlan& task = question.plan.task;
  const bool is_target = task.target.metric.ends_with("_auc");
  const char* key = is_target ? "task.target.metric" : "task.accept.metric";
  return make_fault(key,
                    fmt::format("\"accuracy\", \"loss\" or \"macro_f1\": areas under curves are of "
                                "two classes, {} has {}",
                                task.dataset, sample_shape(task).classes),
                    toml_string(is_target ? task.target.metric : task.accept.metric), {});
}

// The name becomes a folder's.
PlanFault name_fault(const Question& question) {
  std::string name = question.plan.name;
  std::replace(name.begin(), name.end(), '/', '-');
  return make_fault("name", "a name without /", toml_string(question.plan.name),
                    {{{"name", toml_string(name)}}});
}

}  // namespace weft::plan_rules
