// What a stage computes for one microbatch, for the pipeline's runner: the model's layers between
// host batches on one side and gradients and losses on the other. One class for training, one for
// evaluation.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "apps/stage_clock.hpp"
#include "core/context.hpp"
#include "io/batch_reader.hpp"
#include "io/host_batch.hpp"
#include "io/sampler.hpp"
#include "layers/stage_model.hpp"
#include "parallel/data/grad_sync.hpp"
#include "parallel/pipeline/stage_work.hpp"

namespace weft {

// Rows `rows` of a host batch in device memory, as far as the stage looks at them: the input on the
// first stage, labels and weights on the last.
Microbatch to_device(Context& context, const StageModel& model, const HostBatch& batch, Range rows,
                     float scale);

// The microbatches of the lanes that this rank owns, lane by lane: number k of the runner is
// microbatch k mod m of the k / m -th owned lane, m = microbatches per lane.
class TrainingWork final : public pipeline::StageWork {
 public:
  // All must outlive it.
  TrainingWork(Context& context, StageModel& model, GradSync& grad_sync, index_t micro,
               index_t microbatches_per_lane)
      : context_(context),
        model_(model),
        grad_sync_(grad_sync),
        micro_(micro),
        per_lane_(microbatches_per_lane) {}

  // A step begins. `batch` stays until its end.
  void begin(const HostBatch& batch, index_t step);
  index_t num_microbatches() const { return grad_sync_.lanes().size() * per_lane_; }

  Tensor forward(index_t number, Tensor input) override;
  Tensor backward(index_t number, Tensor output_gradient) override;

  // Of each owned lane; zeros on a stage that is not the last.
  const std::vector<LossSums>& lane_sums() const { return lane_sums_; }

  // Sees gradients as each microbatch leaves them: piece by piece, then, before a lane's end folds
  // them, the accumulators of what is summed by token blocks. Empty: nobody does.
  struct GradientWatch {
    GradientReady piece;
    std::function<void()> token_blocks;
  };
  void set_gradient_watch(GradientWatch watch) { gradient_watch_ = std::move(watch); }

  // Each step's first forward pass takes so much longer.
  void slow_down(std::chrono::nanoseconds delay) { delay_ = delay; }

  // Measures each pass from now on; null: nobody does. It must outlive them. Returns the last one.
  StageClock* set_clock(StageClock* clock) { return std::exchange(clock_, clock); }

 private:
  Pass pass_of(index_t number) const;

  Context& context_;
  StageModel& model_;
  GradSync& grad_sync_;
  index_t micro_;
  index_t per_lane_;
  const HostBatch* batch_ = nullptr;
  index_t step_ = 0;
  float scale_ = 0.0f;
  std::map<index_t, StageModel::State> under_way_;
  std::vector<LossSums> lane_sums_;
  GradientWatch gradient_watch_;
  std::chrono::nanoseconds delay_{};
  StageClock* clock_ = nullptr;
};

// Microbatches `mine` of an evaluation, without augmentation and dropout.
class EvaluationWork final : public pipeline::StageWork {
 public:
  EvaluationWork(Context& context, StageModel& model, const BatchReader& reader,
                 const EvalSampler& sampler, Range mine, index_t micro)
      : context_(context),
        model_(model),
        reader_(reader),
        sampler_(sampler),
        mine_(mine),
        micro_(micro),
        sums_(static_cast<std::size_t>(mine.size())) {}

  Tensor forward(index_t number, Tensor input) override;
  Tensor backward(index_t, Tensor) override { return {}; }

  // Of each microbatch; zeros on a stage that is not the last.
  const std::vector<LossSums>& sums() const { return sums_; }
  // Of the real samples of all of them, in order; none on a stage that is not the last.
  const std::vector<Prediction>& predictions() const { return predictions_; }

 private:
  Context& context_;
  StageModel& model_;
  const BatchReader& reader_;
  const EvalSampler& sampler_;
  Range mine_;
  index_t micro_;
  HostBatch batch_;
  std::vector<LossSums> sums_;
  std::vector<Prediction> predictions_;
};

}  // namespace weft
