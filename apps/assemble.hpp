// From a plan to the objects that it asks for: the one place that reads a plan's words and knows
// the classes behind them.
#pragma once

#include <memory>
#include <vector>

#include "core/context.hpp"
#include "core/flat_ranges.hpp"
#include "core/learning_rate.hpp"
#include "core/optimizer.hpp"
#include "core/parameter.hpp"
#include "layers/stage_model.hpp"
#include "parallel/comm/collective.hpp"
#include "parallel/data/grad_sync.hpp"
#include "parallel/data/tied_parameter.hpp"
#include "parallel/mesh.hpp"
#include "parallel/pipeline/schedule.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/tensor/tensor_parallel.hpp"

namespace weft {

Order order_of_sums(const Plan& plan);
std::vector<MeshAxis> mesh_axes(const Plan& plan);
WaitOptions wait_options(const Plan& plan);
// Without the token blocks that a tp rank owns: TensorParallel knows those.
Numerics numerics_of(const Plan& plan);
TokenBlocks token_blocks_of(const Plan& plan);

index_t num_classes_of(const Plan& plan);

// The part of stage `pp_rank`; its parameters go to `parameters`, what it has but a copy of to
// `copies`. `tp` must outlive the model.
StageModel make_model(const Plan& plan, index_t pp_rank, ParameterSet& parameters,
                      ParameterSet& copies, TensorParallel& tp);

GradSyncOptions grad_sync_options(const Plan& plan);
// Where plan.ties_embedding().
TiedParameter::Options tied_options(const Plan& plan);
std::unique_ptr<Optimizer> make_optimizer(Context& context, const OptimizerPlan& plan,
                                          const FlatRanges& owned);
LearningRate learning_rate_of(const Plan& plan);

// What the stages of replica `dp_rank` do in a step, messages included.
pipeline::Schedule training_schedule(const Plan& plan, index_t dp_rank);

}  // namespace weft
