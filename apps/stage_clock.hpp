// What a rank's stage takes for its blocks and for everything else, step by step: measurements for
// layout.stages = "measured". Where it hangs on a stage's work the device is waited for after each
// layer, so it is meant for a few steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/context.hpp"
#include "layers/stage_model.hpp"
#include "parallel/pipeline/stage_split.hpp"

namespace weft {

class StageClock final : public LayerWatch {
 public:
  // Of a stage of `num_blocks` blocks; `context` and `model` must outlive it.
  StageClock(Context& context, StageModel& model, index_t num_blocks)
      : context_(context), model_(model), num_blocks_(num_blocks) {}

  // Around one microbatch's forward or backward pass, with all that the stage does for it. A null
  // clock: nothing is measured.
  class Pass {
   public:
    Pass(StageClock* clock, bool is_forward);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    StageClock* clock_;
    bool is_forward_;
    std::int64_t begin_ns_ = 0;
  };

  // After a step: the passes since the last call. A step without passes counts for nothing.
  void end_step();
  index_t num_steps() const { return static_cast<index_t>(steps_.size()); }

  // Of a microbatch, in milliseconds: medians over steps, each number by itself.
  pipeline::StageCost cost() const;

  void before_layers() override { last_ns_ = now_ns(); }
  void after_forward(index_t layer, const std::string& name, const Activation& y) override;
  void after_backward_input(index_t, const std::string&, const Activation&) override {}
  void after_backward_weight(index_t layer, const std::string& name) override;

 private:
  struct Sums {
    std::int64_t all_ns[2] = {};     // forward, backward
    std::int64_t blocks_ns[2] = {};  // of it
    index_t num_microbatches = 0;
  };
  std::int64_t now_ns() const;
  void after_layer(int pass, const std::string& name);

  Context& context_;
  StageModel& model_;
  index_t num_blocks_;
  std::int64_t last_ns_ = 0;  // the end of the layer before, or the first one's begin
  Sums now_;
  std::vector<pipeline::StageCost> steps_;
};

}  // namespace weft
