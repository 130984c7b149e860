// The tensors of a plan's model, and what each rank of its layout writes of them, without ranks and
// without the model's memory: the layers name and cut their parameters, and nothing is allocated.
#pragma once

#include <string>
#include <vector>

#include "core/context.hpp"
#include "io/checkpoint/reshard_cut.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// Values, by name; fingerprints are 0.
std::vector<TensorRecord> model_tensors(const Plan& plan);

// Kinds of state that the plan's optimizer keeps beside the values. Kokkos must run.
std::vector<std::string> optimizer_kinds(const Plan& plan);

// By world rank, the shards that a run of the plan writes. Throws Error(usage) where `tensors` are
// not those of its model.
std::vector<ShardCut> shards_of_layout(const Plan& plan, const std::vector<TensorRecord>& tensors);

}  // namespace weft
