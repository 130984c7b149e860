// Named parameters of one rank, their values, gradients and initial numbers, in flat memory: one
// block of values and one of gradients, in which each parameter's local storage begins on a
// multiple of 64 elements. Flat, so that a gradient bucket, an optimizer step and a copy are one
// range. First come, in the order of add(), the parameters whose gradients layers complete one by
// one; then, in one range, those whose rows are summed by token blocks, which the end of a lane
// completes all at once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/context.hpp"
#include "core/shard_spec.hpp"
#include "core/tensor.hpp"

namespace weft {

// Where a parameter begins: uniform in (-bound, bound) by its name and global index, or a constant.
struct InitialValue {
  float constant = 0.0f;
  float uniform_bound = 0.0f;  // 0: the constant
};

// How the rows of a microbatch are summed for a parameter's gradient.
enum class GradientRows {
  all,           // by the layer itself: matrices, and biases cut over tp (EXACT 3.2, 3.3)
  token_blocks,  // one accumulator per token block, folded by a tree when a lane ends (EXACT 3.4)
};

// Rows of a matrix (elements of a vector) that are those of several tensors in turns: `rows` of the
// first, as many of each other one, and again from the first. Pieces hold whole rounds.
struct Turns {
  std::vector<std::string> names;  // empty: the parameter is one tensor of its own name
  index_t rows = 0;
};

struct Parameter {
  std::string name;  // "block.0.up.weight"
  ShardSpec spec;
  InitialValue initial;
  GradientRows rows = GradientRows::all;
  bool decays = false;  // weight decay falls on it: at first, on matrices alone
  Turns turns;          // what it is to the outside (core/logical_tensor.hpp)
  index_t offset = 0;   // of its local storage in the flat blocks, in elements

  float* value = nullptr;     // local storage
  float* gradient = nullptr;  // of the lane under way, or of the step once it is complete
  // GradientRows::token_blocks: one row of n for each of the rank's token blocks, `partial_stride`
  // elements apart; row b = sum over the rows of that token block.
  float* partials = nullptr;
  index_t partial_stride = 0;

  float* value_of(index_t shard) const { return value + spec.offset(shard); }
  float* gradient_of(index_t shard) const { return gradient + spec.offset(shard); }
};

class ParameterSet {
 public:
  // Before allocate(). The reference stays valid.
  Parameter& add(std::string name, const ShardSpec& spec, InitialValue initial, GradientRows rows);

  // Gives each its place in the flat blocks: all that can be known of a set without its memory.
  // Once.
  void lay_out();
  // lay_out(), then allocates values and sets them from names and global indices; pads and gaps are
  // 0.
  void allocate(Context& context);

  const std::vector<std::unique_ptr<Parameter>>& all() const { return parameters_; }
  index_t flat_elements() const { return flat_elements_; }
  // Elements held and not pads: what the rank's share of the model is.
  index_t held_elements() const;
  float* values() const { return values_.data(); }

  // Points every parameter's gradient into `flat`, flat_elements() long.
  void bind_gradients(float* flat);
  // Points them all into `shared`, shared_elements() long: for gradients that are used up as soon
  // as they are ready. Those summed by token blocks, ready all at once, lie side by side as in a
  // flat block; the others all at the start.
  void bind_gradients_to_one(float* shared);
  index_t shared_elements() const;
  // Sets to 0 what no layer writes: the gaps behind blocks, in a new block of gradients.
  void clear_gaps(float* flat) const;

  // Where in a flat block the parameters summed by token blocks lie.
  Range token_block_range() const { return token_block_range_; }
  // Their accumulators: a row of token_block_range().size() for each of the rank's token blocks.
  float* partials() const { return partials_.data(); }
  // Their bound gradients, one range.
  float* token_block_gradients() const { return token_block_gradients_; }
  // Folds the accumulators of all token blocks into the bound gradients: the end of a lane, where
  // this rank sums every token block. Uses the accumulators up.
  void fold_partials(Context& context);

 private:
  void place(Parameter& parameter);

  std::vector<std::unique_ptr<Parameter>> parameters_;
  index_t flat_elements_ = 0;
  Range token_block_range_;
  std::vector<Range> gaps_;  // of a flat block
  float* token_block_gradients_ = nullptr;
  Tensor values_;
  Tensor partials_;
};

}  // namespace weft
