// A stage whose work is a chain of hashes: what leaves a pipeline of them tells which microbatch
// went through which stages, in which order, with which activations kept; and the same chain on one
// rank.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "core/context.hpp"
#include "parallel/pipeline/stage_work.hpp"

namespace weft::pipeline::testing {

using Words = std::array<std::uint32_t, 12>;
inline const Shape boundary{4, 3};

// One step of the chain: every word depends on all of `words` and `salt` (xorshift and multiply).
Words hashed(const Words& words, std::uint32_t salt);

// What the whole pipeline makes of one step, on one rank.
struct Outcome {
  std::vector<Words> losses;                // of the last stage, by microbatch
  std::vector<Words> gradients;             // of the first stage, by microbatch
  std::vector<Words> gradients_of_weights;  // by stage: an accumulation that depends on its order
  friend bool operator==(const Outcome&, const Outcome&) = default;
};
Outcome serial(int num_stages, index_t num_microbatches, bool training, int step);

class HashStage final : public StageWork {
 public:
  // `disturb`: called before each computation; may wait or throw.
  HashStage(Context& context, int stage, int num_stages, bool training,
            std::function<void(char kind, index_t microbatch)> disturb = {});

  void begin_step(int step);
  Tensor forward(index_t microbatch, Tensor input) override;
  Tensor backward(index_t microbatch, Tensor output_gradient) override;

  // Of the step that has ended. `losses` on the last stage, `gradients` on the first one.
  const std::vector<Words>& losses() const { return losses_; }
  const std::vector<Words>& gradients() const { return gradients_; }
  const Words& gradient_of_weights() const { return gradient_of_weights_; }
  std::size_t peak_activations() const { return peak_; }
  bool is_empty() const { return kept_.empty(); }

 private:
  Tensor tensor_of(const Words& words);

  Context& context_;
  int stage_;
  int num_stages_;
  bool training_;
  std::function<void(char, index_t)> disturb_;
  int step_ = 0;
  std::map<index_t, Words> kept_;  // forward's input, by microbatch
  std::size_t peak_ = 0;
  std::vector<Words> losses_;
  std::vector<Words> gradients_;
  Words gradient_of_weights_{};
};

}  // namespace weft::pipeline::testing
