#include "parallel/plan/plan.hpp"

#include "parallel/plan/plan_keys.hpp"
#include "parallel/plan/plan_rules.hpp"

namespace weft {

index_t Plan::steps_per_epoch() const {
  const index_t padded = batch.last == LastBatch::pad ? batch.global - 1 : 0;
  return (task.train + padded) / batch.global;
}

index_t Plan::num_steps() const {
  return run.steps ? *run.steps : run.epochs.value_or(0) * steps_per_epoch();
}

index_t Plan::world_rank(index_t tp_rank, index_t dp_rank) const {
  return layout.order == "dp,tp" ? dp_rank + layout.dp * tp_rank : tp_rank + layout.tp * dp_rank;
}

SampleShape sample_shape(const TaskPlan& task) {
  if (task.dataset == "cifar10") return {.features = 3 * 32 * 32, .classes = 10};
  return {};
}

std::vector<PlanFault> validate(const Plan& plan, std::optional<index_t> num_ranks) {
  std::vector<PlanFault> faults = check_keys(plan);
  for (PlanFault& fault : plan_rules::check_rules(plan, num_ranks, faults)) {
    faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace weft
