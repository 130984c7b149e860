// One rank's part of a training run: owns the model's state and does a step or an evaluation when
// told. It prints nothing and writes no file; train_command does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/evaluation.hpp"
#include "apps/microbatch_work.hpp"
#include "apps/training_data.hpp"
#include "core/context.hpp"
#include "core/flat_ranges.hpp"
#include "core/hash.hpp"
#include "core/learning_rate.hpp"
#include "core/optimizer.hpp"
#include "io/batch_reader.hpp"
#include "io/checkpoint/checkpoint_index.hpp"
#include "io/checkpoint/local_state.hpp"
#include "io/loader.hpp"
#include "layers/stage_model.hpp"
#include "parallel/data/global_norm.hpp"
#include "parallel/data/grad_sync.hpp"
#include "parallel/data/tied_parameter.hpp"
#include "parallel/mesh.hpp"
#include "parallel/pipeline/runner.hpp"
#include "parallel/plan/plan.hpp"
#include "parallel/tensor/tensor_parallel.hpp"

namespace weft {

struct StepResult {
  index_t step = 0;
  index_t epoch = 0;
  double loss = 0.0;  // mean over the targets of the global batch; the same on every rank
  double accuracy = 0.0;
  double learning_rate = 0.0;
  double gradient_norm = 0.0;
  index_t num_real = 0;  // samples
  // Empty, or why the step was left out, and the first number that is not finite.
  std::string skipped = {};
};

class Trainer {
 public:
  // `restored`: start_at() will say where; until then there is no step.
  enum class Start { at_first_step, restored };

  // Collective over the run. `plan` is valid for transport.size() ranks; `data` must outlive the
  // trainer. Throws AgreedError where the ranks' machines or libraries differ (exact mode).
  Trainer(const Plan& plan, const TrainingData& data, Transport& transport,
          Start start = Start::at_first_step);

  // What a checkpoint has of this rank: memory to save from or to load into, the part of it that is
  // this rank's to write, and the place in training. Between steps.
  LocalState state() const { return local_state(parameters_, *optimizer_); }
  FlatRanges share_to_write();
  RunProgress progress() const;
  // Collective. After the state was loaded: copies of parts of it get the new values.
  void take_loaded_state();
  // After that: the next step is the one after progress.step. Nothing is drawn or
  // read in between.
  void start_at(RunProgress progress);
  // Collective, between steps: the pipeline is cut anew, into stages of so many blocks. The state
  // is gone with the old stages: as one that was made `restored`, the trainer then needs a loaded
  // state, take_loaded_state() and start_at(). What was under way in context and mesh stays.
  void split_again(std::vector<index_t> stages);

  // Collective. The next step: data, forward, backward, reduction, update. Where loss or gradient
  // norm is not finite there is no update: it throws AgreedError, or skips the step as the plan
  // says. What a skipped step leaves: its batch is used and the step counts, so order of data and
  // learning rate stay what they were; parameters and moments are as before, and the optimizer's
  // count of updates, too; its loss is recorded as NaN, which is all that a resume needs.
  StepResult step();

  // For gradients that are applied in an order of their own (asynchronous data parallel); on a
  // layout of one rank, between steps. Forward and backward of batch `step` of the run; its gradient,
  // parameters().flat_elements() floats, goes to host memory. No update.
  StepResult gradient_of(const HostBatch& batch, index_t step, float* gradient);
  // The update that follows those made so far, by a gradient in host memory; fills in learning rate
  // and norm. Throws Error(failed) where loss or norm is not finite.
  void apply_gradient(const float* gradient, StepResult& result);
  // Called as each piece of a gradient leaves a microbatch's backward pass.
  void watch_gradients(TrainingWork::GradientWatch watch) {
    work_->set_gradient_watch(std::move(watch));
  }

  // Each later step takes this rank so much longer; changes no bit.
  void slow_down(std::chrono::nanoseconds delay) { work_->slow_down(delay_ = delay); }

  // Of this rank's stage, in the steps from now on; null: none. It ends with the stage.
  void time_stage(StageClock* clock) { work_->set_clock(clock); }

  // What this rank computed the last step with; valid until the next one.
  const HostBatch& batch() const { return *batch_; }

  // Collective. On a part that is not trained on, without augmentation and dropout; the last
  // microbatch is padded to its full shape, and padding does not count. Texts have all their tokens
  // also where training cuts batches to length buckets, so that what a checkpoint is worth depends
  // neither on them nor on which samples stand beside each other. Where `predictions` is given, it
  // gets those of all replicas: of each label, in the order of the part's samples.
  Evaluation evaluate(EvalSplit split, std::vector<Prediction>* predictions = nullptr);

  // Collective. Hash of parameters and optimizer state, the same for any layout; checks on the way
  // that all replicas are equal.
  Hash128 state_hash();

  // Steps so far that were left out, and those of them at the end.
  index_t num_skipped() const { return num_skipped_; }
  index_t num_skipped_in_a_row() const;

  // Loss bits of all steps so far.
  Hash128 loss_hash() const { return hash128(losses_.data(), losses_.size() * sizeof(double)); }

  // Payload that this rank has sent so far over tp, dp and pp.
  std::uint64_t bytes_sent();

  index_t num_steps() const { return plan_.num_steps(); }
  index_t steps_done() const { return step_; }
  double last_loss() const { return losses_.empty() ? 0.0 : losses_.back(); }
  index_t steps_per_epoch() const { return plan_.steps_per_epoch(); }
  const Plan& plan() const { return plan_; }
  Context& context() { return context_; }
  Mesh& mesh() { return mesh_; }
  const ParameterSet& parameters() const { return parameters_; }
  // Null where no parameter is used by two layers.
  const TiedParameter* tied() const { return tied_.get(); }
  const Optimizer& optimizer() const { return *optimizer_; }
  const StageModel& model() const { return *model_; }
  StageModel& model() { return *model_; }
  const GradSync& grad_sync() const { return *grad_sync_; }
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  // Everything that follows from the rank's stage, in new memory.
  void build_stage();
  // The sum of all lanes (or of all microbatches of an evaluation), in the tree's order.
  LossSums sum_over_leaves(const std::vector<LossSums>& mine, index_t num_leaves);
  EvalSampler sampler_of(EvalSplit split) const;
  // Result: loss and accuracy of the global batch.
  StepResult forward_backward(const HostBatch& batch, index_t step);
  // Gradients to their sum, norm, optimizer, values to all.
  void update(StepResult& result);
  // Of the bound gradients: norm and learning rate. False where loss or norm is not finite.
  bool measure(StepResult& result);
  void apply_bound_gradients(const StepResult& result);
  void start_loader();
  void check_machine();
  // Collective. For a step without update: what was first, and whether the run goes on.
  void leave_out(StepResult& result);

  Plan plan_;
  const TrainingData& data_;
  Context context_;
  Mesh mesh_;
  TensorParallel tp_;
  ParameterSet parameters_;
  ParameterSet copies_;  // of parameters of another stage, or of this one for a second use
  std::unique_ptr<StageModel> model_;
  std::unique_ptr<TiedParameter> tied_;
  std::unique_ptr<GradSync> grad_sync_;
  std::unique_ptr<GlobalNorm> global_norm_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<TrainingWork> work_;
  std::unique_ptr<pipeline::Runner> runner_;
  LearningRate learning_rate_;
  std::unique_ptr<Loader> loader_;
  const HostBatch* batch_ = nullptr;  // the loader's
  index_t step_ = 0;
  std::vector<double> losses_;  // NaN: a step that was left out
  index_t num_skipped_ = 0;
  std::string fingerprint_;
  std::chrono::nanoseconds delay_{};
};

}  // namespace weft
