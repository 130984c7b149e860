#include "apps/assemble.hpp"

#include "layers/gpt.hpp"
#include "layers/mlp_classifier.hpp"
#include "layers/text_classifier.hpp"
#include "layers/vit_classifier.hpp"
#include "parallel/pipeline/generators.hpp"
#include "parallel/pipeline/lower.hpp"

namespace weft {

Order order_of_sums(const Plan& plan) { return plan.is_exact() ? Order::tree : Order::any; }

std::vector<MeshAxis> mesh_axes(const Plan& plan) {
  return {{"tp", static_cast<int>(plan.layout.tp)},
          {"dp", static_cast<int>(plan.layout.dp)},
          {"pp", static_cast<int>(plan.layout.pp)}};
}

WaitOptions wait_options(const Plan& plan) {
  return {.deadline = std::chrono::milliseconds(
              static_cast<std::chrono::milliseconds::rep>(plan.comm.timeout_s * 1e3))};
}

Numerics numerics_of(const Plan& plan) {
  return {.num_pieces = plan.num_pieces(),
          .num_token_blocks = plan.num_token_blocks(),
          .seed = plan.numerics.seed};
}

TokenBlocks token_blocks_of(const Plan& plan) {
  return {.count = plan.num_token_blocks(), .sequence_parallel = plan.layout.sequence_parallel};
}

index_t num_classes_of(const Plan& plan) { return sample_shape(plan.task).classes; }

namespace {

MlpSpec mlp_of(const Plan& plan) {
  return {.input_features = sample_shape(plan.task).features(),
          .layers = plan.model.layers,
          .hidden = plan.model.hidden,
          .feed_forward = plan.feed_forward(),
          .dropout = static_cast<float>(plan.model.dropout),
          .num_classes = num_classes_of(plan),
          .padded_classes = plan.padded_classes()};
}

VitSpec vit_of(const Plan& plan) {
  const SampleShape image = sample_shape(plan.task);
  return {.patches = {.channels = image.channels, .side = image.side, .patch = plan.model.patch},
          .layers = plan.model.layers,
          .hidden = plan.model.hidden,
          .heads = plan.model.heads,
          .feed_forward = plan.feed_forward(),
          .dropout = static_cast<float>(plan.model.dropout),
          .num_classes = num_classes_of(plan),
          .padded_classes = plan.padded_classes()};
}

TextSpec text_of(const Plan& plan) {
  return {.vocabulary = sample_shape(plan.task).vocabulary,
          .padded_vocabulary = plan.padded_vocabulary(),
          .tokens = plan.tokens_per_sample(),
          .hidden = plan.model.hidden,
          .heads = plan.model.heads,
          .feed_forward = plan.feed_forward(),
          .dropout = static_cast<float>(plan.model.dropout)};
}

TextClassifierSpec text_classifier_of(const Plan& plan) {
  return {.text = text_of(plan),
          .num_classes = num_classes_of(plan),
          .padded_classes = plan.padded_classes()};
}

}  // namespace

StageModel make_model(const Plan& plan, index_t pp_rank, ParameterSet& parameters,
                      ParameterSet& copies, TensorParallel& tp) {
  const StagePart part{.blocks = plan.blocks_of_stage(pp_rank),
                       .is_first = pp_rank == 0,
                       .is_last = pp_rank + 1 == plan.layout.pp};
  if (plan.is_vit()) return make_vit_classifier(vit_of(plan), part, parameters, tp);
  if (plan.is_text_encoder())
    return make_text_classifier(text_classifier_of(plan), part, parameters, tp);
  if (plan.is_gpt()) {
    return make_gpt(text_of(plan), part, parameters, tp, plan.ties_embedding() ? &copies : nullptr);
  }
  return make_mlp_classifier(mlp_of(plan), part, parameters, tp);
}

GradSyncOptions grad_sync_options(const Plan& plan) {
  return {.num_lanes = plan.num_lanes(),
          .microbatches_per_lane = plan.microbatches_per_lane(),
          .order = order_of_sums(plan),
          .zero = plan.layout.zero,
          .bucket_bytes = plan.comm.bucket_bytes};
}

TiedParameter::Options tied_options(const Plan& plan) {
  return {.name = tied_table,
          .num_lanes = plan.num_lanes(),
          .order = order_of_sums(plan),
          .message_bytes = plan.comm.bucket_bytes};
}

std::unique_ptr<Optimizer> make_optimizer(Context& context, const OptimizerPlan& plan,
                                          const FlatRanges& owned) {
  if (plan.kind == "sgd") {
    return make_sgd(context, {.momentum = plan.momentum, .weight_decay = plan.weight_decay}, owned);
  }
  return make_adamw(context,
                    {.beta1 = plan.beta1,
                     .beta2 = plan.beta2,
                     .eps = plan.eps,
                     .weight_decay = plan.weight_decay},
                    owned);
}

LearningRate learning_rate_of(const Plan& plan) {
  const SchedulePlan& schedule = plan.optimizer.schedule;
  return {.peak = plan.optimizer.lr,
          .cosine = schedule.kind == "cosine",
          .warmup_steps = schedule.warmup_steps,
          .num_steps = plan.num_steps(),
          .final_fraction = schedule.final_fraction};
}

pipeline::Schedule training_schedule(const Plan& plan, index_t dp_rank) {
  return pipeline::lower(pipeline::make_schedule(
      plan.layout.schedule, static_cast<int>(plan.layout.pp), plan.microbatches_of(dp_rank)));
}

}  // namespace weft
