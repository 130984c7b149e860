// Which number of a step was the first that is not finite: the step is done once more, with every
// activation and gradient looked at. Only for a step that failed, so that sound ones pay nothing.
//
// "First" is an order of the computation and not of time, so that it is the same on every layout:
// parameters, before anything is computed; then microbatch by microbatch of the global batch, in
// each of them forward through the layers, the loss, backward through the layers (the gradient of
// a layer's input, then of its parameters), gradients summed by token blocks; then the sums over
// lanes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "apps/microbatch_work.hpp"
#include "core/context.hpp"
#include "core/parameter.hpp"
#include "layers/stage_model.hpp"
#include "parallel/data/grad_sync.hpp"
#include "parallel/mesh.hpp"
#include "parallel/pipeline/runner.hpp"
#include "parallel/pipeline/stage_work.hpp"

namespace weft {

class NonfiniteHunt final : public pipeline::StageWork, private LayerWatch {
 public:
  // What a trainer computes its steps with; all must outlive the hunt. `micro`: samples of a
  // microbatch.
  struct Parts {
    Context& context;
    Mesh& mesh;
    const ParameterSet& parameters;
    const ParameterSet& copies;  // of other stages' parameters, which the model uses, too
    StageModel& model;
    GradSync& grad_sync;
    TrainingWork& work;
    pipeline::Runner& runner;
    index_t micro;
  };
  explicit NonfiniteHunt(const Parts& parts);
  ~NonfiniteHunt() override;

  // Collective. After the step's gradients were released, before any update: "the activation after
  // block.1, in microbatch 2 (samples 8 to 11 of the batch, images 31, 7, 12, 40), on rank 1 (tp 1,
  // dp 0, pp 0)". Where this time everything is finite, it says so: a machine was wrong.
  std::string find(const HostBatch& batch, index_t step);

  Tensor forward(index_t number, Tensor input) override;
  Tensor backward(index_t number, Tensor output_gradient) override;

 private:
  // Microbatch, part of it, stage, layer, kind, parameter: as "first" above says.
  using Place = std::array<std::int64_t, 6>;

  void after_forward(index_t layer, const std::string& name, const Activation& y) override;
  void after_backward_input(index_t layer, const std::string& name, const Activation& dx) override;
  void look_at_gradient(const Parameter& parameter, index_t shard);
  void look_at_parameters();
  void look_at_token_blocks();
  void look_at_sums();

  // f(parameter) for all that the stage's layers use.
  template <class F>
  void for_each_used(const F& f) const;

  void note(const Place& place, const std::string& what);
  std::string microbatch_text() const;
  std::string first_of_all();
  std::int64_t stage() { return parts_.mesh.rank("pp"); }
  // Backward comes to the last stage, and the last layer, first.
  std::int64_t backward_stage() { return parts_.mesh.size("pp") - 1 - stage(); }
  std::int64_t backward_layer(index_t layer) const { return parts_.model.num_layers() - 1 - layer; }

  // The one under way, of the global batch.
  index_t microbatch() const { return parts_.grad_sync.lanes().begin * per_lane_ + number_; }

  Parts parts_;
  index_t per_lane_;                                  // microbatches
  std::map<const Parameter*, std::int64_t> numbers_;  // in the order of the sets
  const HostBatch* batch_ = nullptr;
  index_t number_ = 0;  // of the microbatch under way, among this rank's
  index_t layer_ = 0;   // whose backward is under way
  std::optional<Place> first_;
  std::string what_;
};

}  // namespace weft
