// Two checkpoints against each other, tensor by tensor, whatever layouts wrote them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_reader.hpp"

namespace weft {

struct TensorDifference {
  enum class Kind { equal, values, shape, only_in_a, only_in_b };
  std::string name;
  std::string kind;      // "value", "exp_avg"
  Shape a = {}, b = {};  // shapes
  Kind difference = Kind::equal;
  // Of `values`: elements whose bits differ, the first of them, and the largest |a - b|; NaN where
  // one of the two is no number.
  index_t num_different = 0;
  std::vector<index_t> first = {};  // one index a dim
  float first_a = 0, first_b = 0;
  double max_difference = 0;
};

// All tensors of either, by name and kind. Reads and verifies every byte that both have; never
// holds more than some MiB. Throws Error(data) where a block is damaged. `progress`: called with
// each tensor's name before it is read; may be null.
std::vector<TensorDifference> diff_checkpoints(
    const Checkpoint& a, const Checkpoint& b,
    const std::function<void(const std::string&)>& progress = nullptr);

// Rows of one tensor (of a tensor of one dim: {0, 1}), dense, verified.
std::vector<std::uint32_t> read_rows(const Checkpoint& checkpoint, index_t tensor, Range rows);

}  // namespace weft
