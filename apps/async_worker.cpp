#include "apps/async_worker.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/tensor.hpp"

namespace weft {

Plan worker_plan(const Plan& plan) {
  const LayoutPlan& layout = plan.layout;
  require(
      layout.tp == 1 && layout.pp == 1, ExitCode::usage,
      fmt::format("layout.{}: expected 1, since asynchronous workers are one rank each; found {}",
                  layout.tp != 1 ? "tp" : "pp", layout.tp != 1 ? layout.tp : layout.pp));
  const index_t n = layout.dp;
  require(plan.batch.global % n == 0 && plan.num_lanes() % n == 0, ExitCode::usage,
          fmt::format("expected batch.global and numerics.lanes to be multiples of the {} "
                      "workers (layout.dp); found {} and {}",
                      n, plan.batch.global, plan.num_lanes()));
  Plan worker = plan;
  worker.layout.dp = 1;
  worker.layout.zero = 0;
  worker.batch.global /= n;
  if (plan.is_exact()) worker.numerics.lanes /= n;
  if (worker.run.steps) *worker.run.steps *= n;
  worker.optimizer.schedule.warmup_steps *= n;
  const std::vector<PlanFault> faults = validate(worker, 1);
  require(faults.empty(), ExitCode::usage,
          faults.empty() ? ""
                         : fmt::format("what each of {} workers computes is no legal "
                                       "plan: {}: {}",
                                       n, faults[0].key, faults[0].message));
  return worker;
}

void LoneTrainer::get_values(float* to) const {
  copy_to_host(to, trainer_.parameters().values(), num_values() * index_t{sizeof(float)});
}

void LoneTrainer::set_values(const float* from) {
  copy_to_device(trainer_.parameters().values(), from, num_values() * index_t{sizeof(float)});
}

StepResult LoneTrainer::apply(const GradientNote& note, const float* gradient) {
  StepResult result{.step = trainer_.steps_done(),
                    .epoch = note.epoch,
                    .loss = note.loss,
                    .accuracy = note.accuracy,
                    .num_real = note.num_real};
  trainer_.apply_gradient(gradient, result);
  return result;
}

AsyncWorker::AsyncWorker(const Plan& worker_plan, const TrainingData& data)
    : trainer_(worker_plan, data),
      reader_(*data.samples,
              worker_plan.task.augment ? std::optional(worker_plan.numerics.seed) : std::nullopt,
              data.balance.weights),
      sampler_(training_sampler(worker_plan, data)),
      gradient_(static_cast<std::size_t>(trainer_.num_values())) {}

GradientNote AsyncWorker::compute(const WorkerTask& task) {
  const auto begin = std::chrono::steady_clock::now();
  {
    const Trace::Span span(&trace(), Activity::data_wait, "async.read");
    reader_.read_into(sampler_.indices_of(task.batch), {0, sampler_.global_batch()}, batch_);
  }
  const StepResult result = trainer_->gradient_of(batch_, task.batch, gradient_.data());
  return {.task = task,
          .loss = result.loss,
          .accuracy = result.accuracy,
          .epoch = result.epoch,
          .num_real = result.num_real,
          .compute_ns = (std::chrono::steady_clock::now() - begin) / std::chrono::nanoseconds(1)};
}

}  // namespace weft
