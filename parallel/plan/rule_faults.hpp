// One function for each rule of plan_rules: the fault of a plan that breaks it, with its advice.
// Internal to this folder.
#pragma once

#include "parallel/plan/rule_advice.hpp"

namespace weft::plan_rules {

// model_faults.cpp
PlanFault model_fault(const Question& question);
PlanFault pieces_fault(const Question& question);
PlanFault heads_fault(const Question& question);
PlanFault buckets_fault(const Question& question);
PlanFault patch_fault(const Question& question);
PlanFault input_fault(const Question& question);

// batch_faults.cpp
PlanFault batch_fault(const Question& question);
PlanFault split_fault(const Question& question);
PlanFault run_fault(const Question& question);
PlanFault name_fault(const Question& question);
PlanFault target_fault(const Question& question);
PlanFault accept_fault(const Question& question);
PlanFault metrics_fault(const Question& question);

// layout_faults.cpp
PlanFault tp_fault(const Question& question);
PlanFault dp_fault(const Question& question);
PlanFault pp_fault(const Question& question);
PlanFault stages_fault(const Question& question);
PlanFault split_saved_fault(const Question& question);
PlanFault ranks_fault(const Question& question);

}  // namespace weft::plan_rules
