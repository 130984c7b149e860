#include "parallel/plan/rule_advice.hpp"

#include <algorithm>
#include <cmath>

namespace weft::plan_rules {

IntegerRange range_of(const char* key) { return std::get<IntegerRange>(find_key(key)->legal); }

namespace {

// How far two layouts are apart: factors of two, over all axes.
double distance(const LayoutPlan& a, const LayoutPlan& b) {
  const auto apart = [](index_t x, index_t y) {
    const double ratio = static_cast<double>(x) / static_cast<double>(std::max<index_t>(y, 1));
    return std::abs(std::log2(ratio));
  };
  return apart(a.tp, b.tp) + apart(a.dp, b.dp) + apart(a.pp, b.pp);
}

PlanFix layout_fix(const Plan& from, const Plan& to) {
  PlanFix fix = {{"layout.tp", text_of(to.layout.tp)}, {"layout.dp", text_of(to.layout.dp)}};
  if (to.layout.pp != from.layout.pp) fix.push_back({"layout.pp", text_of(to.layout.pp)});
  if (!stages_fit(to)) fix.push_back({"layout.stages", toml_string(even_word)});
  return fix;
}

// Calls `use` with the plan on each of its layouts of `num_ranks` ranks.
template <class Use>
void for_each_layout(const Plan& plan, index_t num_ranks, Use&& use) {
  Plan trial = plan;
  LayoutPlan& layout = trial.layout;
  const index_t most_pp = std::min(num_ranks, range_of("layout.pp").most);
  for (layout.pp = 1; layout.pp <= most_pp; ++layout.pp) {
    if (num_ranks % layout.pp != 0 || !pp_fits(trial)) continue;
    const index_t rest = num_ranks / layout.pp;
    const index_t most_tp = std::min(rest, range_of("layout.tp").most);
    for (layout.tp = 1; layout.tp <= most_tp; ++layout.tp) {
      layout.dp = rest / layout.tp;
      if (rest % layout.tp != 0 || layout.dp > range_of("layout.dp").most) continue;
      if (layout_fits(trial)) use(trial);
    }
  }
}

}  // namespace

Fixes layouts_for(const Plan& plan, index_t num_ranks) {
  struct Candidate {
    double distance;
    PlanFix fix;
  };
  std::vector<Candidate> candidates;
  for_each_layout(plan, num_ranks, [&](const Plan& trial) {
    candidates.push_back({distance(trial.layout, plan.layout), layout_fix(plan, trial)});
  });
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](auto& a, auto& b) { return a.distance < b.distance; });
  if (candidates.size() > 3) candidates.resize(3);
  Fixes fixes;
  for (Candidate& candidate : candidates) fixes.push_back(std::move(candidate.fix));
  return fixes;
}

Fixes axis_fixes(const Question& question, const char* key, index_t LayoutPlan::*size) {
  if (question.num_ranks) return layouts_for(question.plan, *question.num_ranks);
  Fixes fixes;
  Plan trial = question.plan;
  add_nearest(fixes, key, trial.layout.*size, [&] { return question.is_mended_by(trial); });
  return fixes;
}

}  // namespace weft::plan_rules
