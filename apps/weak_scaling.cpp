#include "apps/weak_scaling.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "parallel/plan/plan_rules.hpp"

namespace weft {

void scale_weakly(GridLayouts& grid) {
  std::vector<GridLayout> legal;
  for (GridLayout& layout : grid.to_run) {
    Plan& plan = layout.plan;
    plan.batch.global *= plan.layout.dp;
    if (plan.layout.dp > 1) layout.name += fmt::format(" batch={}", plan.batch.global);
    const std::vector<PlanFault> faults = validate(plan, std::nullopt);
    if (faults.empty()) {
      legal.push_back(std::move(layout));
    } else {
      grid.skipped.push_back({std::move(plan), std::move(layout.name),
                              faults.front().key + ": " + faults.front().message});
    }
  }
  grid.to_run = std::move(legal);
}

}  // namespace weft
