#include "apps/microbatch_work.hpp"

#include <cassert>
#include <thread>
#include <type_traits>
#include <utility>

#include "core/drill_point.hpp"

namespace weft {

Microbatch to_device(Context& context, const StageModel& model, const HostBatch& batch, Range rows,
                     float scale) {
  // [rows, as many of them as a sample has], or nothing where it has none.
  const auto take = [&](const auto& from) {
    using T = typename std::decay_t<decltype(from)>::value_type;
    if (from.empty()) return Tensor();
    const index_t row_length = static_cast<index_t>(from.size()) / batch.num_rows();
    Tensor to(context.arena, MemoryKind::input, {rows.size(), row_length}, DTypeOf<T>::value);
    copy_to_device(to.raw(), from.data() + rows.begin * row_length, to.num_bytes());
    return to;
  };
  Microbatch microbatch{.x = {},
                        .lengths = take(batch.lengths),
                        .tokens = batch.tokens_per_sample,
                        .labels = {},
                        .weights = {},
                        .scale = scale};
  if (model.is_first())
    microbatch.x = batch.tokens.empty() ? take(batch.features) : take(batch.tokens);
  if (model.is_last()) {
    microbatch.labels = take(batch.labels);
    microbatch.weights = take(batch.weight);
  }
  return microbatch;
}

void TrainingWork::begin(const HostBatch& batch, index_t step) {
  assert(under_way_.empty());
  batch_ = &batch;
  step_ = step;
  scale_ = static_cast<float>(1.0 / static_cast<double>(batch.num_targets_global()));
  lane_sums_.assign(static_cast<std::size_t>(grad_sync_.lanes().size()), {});
}

Pass TrainingWork::pass_of(index_t number) const {
  const index_t first = grad_sync_.lanes().begin * per_lane_;  // of all lanes' microbatches
  return {.step = step_,
          .first_sample = (first + number) * micro_,
          .num_samples = micro_,
          .first_of_lane = number % per_lane_ == 0};
}

Tensor TrainingWork::forward(index_t number, Tensor input) {
  const Trace::Span span(&context_.trace, Activity::forward, "forward", number);
  context_.arena.set_phase(Phase::forward);
  drill::reach("forward");
  const StageClock::Pass timed(clock_, true);
  if (number == 0 && delay_.count() > 0) std::this_thread::sleep_for(delay_);
  const Range rows{number * micro_, (number + 1) * micro_};
  StageModel::Output output =
      model_.forward(context_, to_device(context_, model_, *batch_, rows, scale_), std::move(input),
                     &under_way_[number], pass_of(number));
  lane_sums_[static_cast<std::size_t>(number / per_lane_)] += output.sums;
  return std::move(output.boundary);
}

Tensor TrainingWork::backward(index_t number, Tensor output_gradient) {
  const Trace::Span span(&context_.trace, Activity::backward, "backward", number);
  context_.arena.set_phase(Phase::backward);
  drill::reach("backward");
  const StageClock::Pass timed(clock_, false);
  const bool begins_lane = number % per_lane_ == 0;
  const bool ends_lane = number % per_lane_ == per_lane_ - 1;
  if (begins_lane) grad_sync_.begin_lane(context_, grad_sync_.lanes().begin + number / per_lane_);
  const auto ready = [&](const Parameter& parameter, index_t shard) {
    if (gradient_watch_.piece) gradient_watch_.piece(parameter, shard);
    if (ends_lane) grad_sync_.ready(context_, parameter, shard);
  };
  const auto state = under_way_.find(number);
  Tensor input_gradient =
      model_.backward(context_, state->second, std::move(output_gradient), pass_of(number), ready);
  under_way_.erase(state);
  if (gradient_watch_.token_blocks) gradient_watch_.token_blocks();
  if (ends_lane) grad_sync_.end_lane(context_);
  return input_gradient;
}

Tensor EvaluationWork::forward(index_t number, Tensor input) {
  const Range rows{0, micro_};
  reader_.read_into(sampler_.indices_of(mine_.begin + number), rows, batch_);
  StageModel::Output output =
      model_.forward(context_, to_device(context_, model_, batch_, rows, 1.0f), std::move(input),
                     nullptr, {.num_samples = micro_, .training = false});
  sums_[static_cast<std::size_t>(number)] = output.sums;
  predictions_.insert(predictions_.end(), output.predictions.begin(), output.predictions.end());
  return std::move(output.boundary);
}

}  // namespace weft
