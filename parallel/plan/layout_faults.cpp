// Faults of the grid of ranks: its axes against shards, lanes and blocks, and its size.
#include <algorithm>
#include <numeric>
#include <queue>

#include "parallel/plan/rule_faults.hpp"

namespace weft::plan_rules {

PlanFault tp_fault(const Question& question) {
  const Plan& plan = question.plan;
  Fixes fixes = axis_fixes(question, "layout.tp", &LayoutPlan::tp);
  Plan trial = plan;
  add_nearest(fixes, "numerics.shards", trial.numerics.shards,
              [&] { return question.is_mended_by(trial) && shards_fit(trial); });
  return make_fault("layout.tp",
                    fmt::format("at most one rank per shard: tp <= {}", plan.numerics.shards),
                    text_of(plan.layout.tp), std::move(fixes));
}

PlanFault dp_fault(const Question& question) {
  const Plan& plan = question.plan;
  Fixes fixes = axis_fixes(question, "layout.dp", &LayoutPlan::dp);
  Plan trial = plan;
  add_nearest(fixes, "numerics.lanes", trial.numerics.lanes,
              [&] { return question.is_mended_by(trial) && batch_divides(trial); });
  return make_fault("layout.dp",
                    fmt::format("at most one replica per lane: dp <= {}", plan.numerics.lanes),
                    text_of(plan.layout.dp), std::move(fixes));
}

namespace {

// Numbers of stages or of blocks; a list of stages that no longer fits becomes even with them.
void add_with_stages(const Question& question, const char* key, Plan& trial, index_t& field,
                     Fixes& fixes) {
  const std::vector<index_t> stages = trial.layout.stages;
  const index_t wanted = field;
  Fixes found;
  trial.layout.stages.clear();
  add_nearest(found, key, field, [&] { return question.is_mended_by(trial); });
  trial.layout.stages = stages;
  for (PlanFix& fix : found) {
    field = std::stoll(fix[0].value);
    if (!stages_fit(trial)) fix.push_back({"layout.stages", toml_string(even_word)});
    fixes.push_back(std::move(fix));
  }
  field = wanted;
}

}  // namespace

PlanFault pp_fault(const Question& question) {
  const Plan& plan = question.plan;
  Plan trial = plan;
  Fixes fixes;
  if (question.num_ranks) {
    fixes = layouts_for(plan, *question.num_ranks);
  } else {
    add_with_stages(question, "layout.pp", trial, trial.layout.pp, fixes);
  }
  add_with_stages(question, "model.layers", trial, trial.model.layers, fixes);
  return make_fault(
      "layout.pp",
      fmt::format("at most one stage per block: pp <= model.layers {}", plan.model.layers),
      text_of(plan.layout.pp), std::move(fixes));
}

namespace {

// The list nearest to `stages` with `count` entries of at least 1 that add up to `sum`: entries
// missing at the end begin as 1, then the smallest grow, or the largest shrink, by one at a time.
std::vector<index_t> nearest_stages(std::vector<index_t> stages, index_t count, index_t sum) {
  stages.resize(static_cast<std::size_t>(count), 1);
  for (index_t& stage : stages) stage = std::min(stage, sum);
  index_t missing = sum - std::accumulate(stages.begin(), stages.end(), index_t{0});
  const index_t step = missing > 0 ? 1 : -1;
  using Entry = std::pair<index_t, std::size_t>;  // key, place; the smallest key comes first
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> next;
  for (std::size_t i = 0; i < stages.size(); ++i) next.emplace(step * stages[i], i);
  for (; missing != 0; missing -= step) {
    const std::size_t place = next.top().second;
    next.pop();
    stages[place] += step;
    next.emplace(step * stages[place], place);
  }
  return stages;
}

}  // namespace

PlanFault stages_fault(const Question& question) {
  const Plan& plan = question.plan;
  const std::vector<index_t>& stages = plan.layout.stages;
  const index_t count = std::ssize(stages);
  const index_t sum = std::accumulate(stages.begin(), stages.end(), index_t{0});
  const std::vector<index_t> nearest = nearest_stages(stages, plan.layout.pp, plan.model.layers);
  Fixes fixes = {{{"layout.stages", list_text(nearest)}},
                 {{"layout.stages", toml_string(even_word)}}};
  // The list may be right and the other keys wrong.
  const auto add = [&](const char* key, index_t LayoutPlan::*pp, index_t value) {
    Plan trial = plan;
    (pp != nullptr ? trial.layout.*pp : trial.model.layers) = value;
    if (value <= range_of(key).most && question.is_mended_by(trial)) {
      fixes.push_back({{key, text_of(value)}});
    }
  };
  add("layout.pp", &LayoutPlan::pp, count);
  add("model.layers", nullptr, sum);
  const std::string expected =
      fmt::format("{} for layout.pp = {} that add up to model.layers = {}",
                  plan.layout.pp == 1 ? "1 number" : text_of(plan.layout.pp) + " numbers",
                  plan.layout.pp, plan.model.layers);
  const std::string found = fmt::format("{}, {} with the sum {}", list_text(stages),
                                        count == 1 ? "1 number" : text_of(count) + " numbers", sum);
  return make_fault("layout.stages", expected, found, std::move(fixes));
}

PlanFault split_saved_fault(const Question& /*question*/) {
  return make_fault("layout.stages",
                    "a plan that saves, for \"measured\": stages are split again through a checkpoint",
                    "\"measured\", and no key of [checkpoint] that saves",
                    {{{"checkpoint.at_end", "true"}},
                     {{"layout.stages", toml_string(even_word)}}});
}

namespace {

// "4 or 6": the nearest numbers of ranks that have a layout.
std::string usable_ranks(const Plan& plan, index_t num_ranks) {
  const index_t most = plan.is_exact()
                           ? plan.numerics.shards * plan.numerics.lanes * plan.model.layers
                           : num_ranks + 64;
  std::string text;
  for (const index_t count : nearest_legal(
           num_ranks, 1, most, 1, [&](index_t n) { return !layouts_for(plan, n).empty(); })) {
    text += fmt::format("{}{}", text.empty() ? "" : " or ", count);
  }
  return text;
}

// Why no layout has the ranks that were started.
std::string limits_text(const Plan& plan) {
  if (plan.is_exact()) {
    return fmt::format("tp at most {} shards, dp at most {} lanes, pp at most {} blocks",
                       plan.numerics.shards, plan.numerics.lanes, plan.model.layers);
  }
  return fmt::format("tp divides the {}, micro x dp the batch, pp is at most {} blocks",
                     plan.is_transformer() ? "heads" : "feed-forward width", plan.model.layers);
}

}  // namespace

PlanFault ranks_fault(const Question& question) {
  const Plan& plan = question.plan;
  const index_t num_ranks = *question.num_ranks;
  PlanFault fault{.key = "layout", .message = {}, .fixes = layouts_for(plan, num_ranks)};
  fault.message =
      fmt::format("{} {} started, the layout needs tp {} x dp {} x pp {} = {}: ", num_ranks,
                  num_ranks == 1 ? "rank was" : "ranks were", plan.layout.tp, plan.layout.dp,
                  plan.layout.pp, plan.num_ranks());
  if (layout_fits(plan)) fault.message += fmt::format("start {}, or ", plan.num_ranks());
  if (!fault.fixes.empty()) {
    fault.message += fmt::format("for {}: {}", num_ranks, fixes_text(fault.fixes));
    return fault;
  }
  const std::string usable = usable_ranks(plan, num_ranks);
  fault.message += fmt::format(
      "choose another number, since no layout of this plan has {} ({}); nearest that "
      "has one: {}",
      num_ranks, limits_text(plan), usable.empty() ? "none" : usable);
  return fault;
}

}  // namespace weft::plan_rules
