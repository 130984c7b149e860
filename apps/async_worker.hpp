// One worker of an asynchronous run: computes the gradients of whole batches, one after the other,
// on values that it is given. What it computes is a function of (plan, batch, values), so any rank
// computes the same bits.
#pragma once

#include <chrono>
#include <memory>

#include "apps/trainer.hpp"
#include "apps/training_data.hpp"
#include "io/batch_reader.hpp"
#include "io/sampler.hpp"
#include "parallel/comm/local_transport.hpp"
#include "parallel/data/update_server.hpp"
#include "parallel/plan/plan.hpp"

namespace weft {

// What each of `plan.layout.dp` workers does: the plan on one rank, with the share of the global
// batch that a replica has, as many more steps, and as many more of warm-up. It sees the samples of
// the plan in the same order. Throws Error(usage) where the plan cannot be shared so.
Plan worker_plan(const Plan& plan);

// A trainer of its own, which no other rank takes part in.
class LoneTrainer {
 public:
  // `plan`: worker_plan(); `data` must outlive it.
  LoneTrainer(const Plan& plan, const TrainingData& data)
      : transport_(LocalWorld(1).make_transport(0)),
        trainer_(plan, data, *transport_, Trainer::Start::restored) {}
  Trainer* operator->() { return &trainer_; }
  Trainer& operator*() { return trainer_; }

  index_t num_values() const { return trainer_.parameters().flat_elements(); }
  // Of all parameters, num_values() floats in host memory.
  void get_values(float* to) const;
  void set_values(const float* from);
  // The next update.
  StepResult apply(const GradientNote& note, const float* gradient);

 private:
  std::unique_ptr<Transport> transport_;
  Trainer trainer_;
};

class AsyncWorker {
 public:
  AsyncWorker(const Plan& worker_plan, const TrainingData& data);

  LoneTrainer& trainer() { return trainer_; }
  // Loss and gradient of the task's batch on the values it has now: they are of task.version.
  GradientNote compute(const WorkerTask& task);
  const std::vector<float>& gradient() const { return gradient_; }
  // What it computed last; valid until the next task.
  const HostBatch& batch() const { return batch_; }
  Trace& trace() { return trainer_->context().trace; }

 private:
  LoneTrainer trainer_;
  BatchReader reader_;
  Sampler sampler_;
  HostBatch batch_;
  std::vector<float> gradient_;
};

}  // namespace weft
