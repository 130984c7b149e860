#include "tests/parallel/pipeline/hash_stage.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace weft::pipeline::testing {

namespace {

std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

std::uint32_t salt_of(char kind, int stage, int step) {
  return mixed(static_cast<std::uint32_t>(kind) * 1000003u +
               static_cast<std::uint32_t>(stage) * 1009u + static_cast<std::uint32_t>(step));
}

// What the first stage reads, as from a data set.
Words sample(index_t microbatch, int step) {
  return hashed(Words{}, salt_of('x', static_cast<int>(microbatch), step));
}

Words joined(Words a, const Words& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = mixed(a[i]) + b[i];
  return a;
}

Words words_in(const Tensor& tensor) {
  Words words;
  copy_to_host(words.data(), tensor.raw(), tensor.num_bytes());
  return words;
}

}  // namespace

Words hashed(const Words& words, std::uint32_t salt) {
  Words result = words;
  std::uint32_t state = salt;
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t& word : result) word = state = mixed(state ^ word) + 0x9e3779b9u;
  }
  return result;
}

Outcome serial(int num_stages, index_t num_microbatches, bool training, int step) {
  Outcome outcome;
  outcome.gradients_of_weights.resize(static_cast<std::size_t>(num_stages));
  for (index_t k = 0; k < num_microbatches; ++k) {
    std::vector<Words> inputs;
    Words words = sample(k, step);
    for (int stage = 0; stage < num_stages; ++stage) {
      inputs.push_back(words);
      words = hashed(words, salt_of('F', stage, step));
    }
    outcome.losses.push_back(words);
    if (!training) continue;
    words = Words{};
    for (int stage = num_stages - 1; stage >= 0; --stage) {
      const auto s = static_cast<std::size_t>(stage);
      words = hashed(joined(inputs[s], words), salt_of('B', stage, step));
      outcome.gradients_of_weights[s] = joined(outcome.gradients_of_weights[s], words);
    }
    outcome.gradients.push_back(words);
  }
  return outcome;
}

HashStage::HashStage(Context& context, int stage, int num_stages, bool training,
                     std::function<void(char kind, index_t microbatch)> disturb)
    : context_(context),
      stage_(stage),
      num_stages_(num_stages),
      training_(training),
      disturb_(std::move(disturb)) {}

void HashStage::begin_step(int step) {
  step_ = step;
  losses_.clear();
  gradients_.clear();
  gradient_of_weights_ = {};
}

Tensor HashStage::tensor_of(const Words& words) {
  Tensor tensor(context_.arena, MemoryKind::activations, boundary);
  copy_to_device(tensor.raw(), words.data(), tensor.num_bytes());
  return tensor;
}

Tensor HashStage::forward(index_t microbatch, Tensor input) {
  if (disturb_) disturb_('F', microbatch);
  if (static_cast<bool>(input) != (stage_ > 0)) throw std::logic_error("forward: whose input?");
  const Words in = input ? words_in(input) : sample(microbatch, step_);
  if (training_) kept_[microbatch] = in;
  peak_ = std::max(peak_, training_ ? kept_.size() : 1);
  const Words out = hashed(in, salt_of('F', stage_, step_));
  if (stage_ < num_stages_ - 1) return tensor_of(out);
  losses_.push_back(out);
  return {};
}

Tensor HashStage::backward(index_t microbatch, Tensor output_gradient) {
  if (disturb_) disturb_('B', microbatch);
  const bool is_last = stage_ == num_stages_ - 1;
  if (static_cast<bool>(output_gradient) == is_last)
    throw std::logic_error("backward: whose gradient?");
  const auto in = kept_.extract(microbatch);
  const Words above = is_last ? Words{} : words_in(output_gradient);
  const Words out = hashed(joined(in.mapped(), above), salt_of('B', stage_, step_));
  gradient_of_weights_ = joined(gradient_of_weights_, out);
  if (stage_ > 0) return tensor_of(out);
  gradients_.push_back(out);
  return {};
}

}  // namespace weft::pipeline::testing
