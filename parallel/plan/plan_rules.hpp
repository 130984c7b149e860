// The rules of a plan that join several keys, as yes-or-no questions. validate() asks them and,
// where the answer is no, tries neighbouring values until it is yes; warnings() tries better values
// the same way. Internal to this folder.
#pragma once

#include <optional>
#include <vector>

#include "parallel/plan/plan.hpp"

namespace weft::plan_rules {

// The feed-forward width is a multiple of the number of pieces.
bool pieces_fit(const Plan& plan);

// tp <= shards, dp <= lanes. In fast mode pieces and lanes follow the layout, so both always hold.
bool tp_fits(const Plan& plan);
bool dp_fits(const Plan& plan);

// global = micro x microbatches per lane x lanes, in whole numbers.
bool batch_divides(const Plan& plan);

// An epoch has one step at least.
bool batch_fits_split(const Plan& plan);

// The plan can run on its layout, all that does not depend on the layout being as it is.
bool layout_fits(const Plan& plan);

// The faults of all rules whose keys are not among those of `known_faults`.
std::vector<PlanFault> check_rules(const Plan& plan, std::optional<index_t> num_ranks,
                                   const std::vector<PlanFault>& known_faults);

}  // namespace weft::plan_rules
