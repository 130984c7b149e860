// What a rank holds of a run's state, in the words of checkpoints: boxes of tensors with global
// names. Where their elements lie in memory, core/box_copy knows.
#pragma once

#include <string>
#include <vector>

#include "core/box_copy.hpp"
#include "core/flat_ranges.hpp"
#include "core/logical_tensor.hpp"
#include "core/optimizer.hpp"
#include "core/parameter.hpp"

namespace weft {

// One kind of number that there is for every element of every parameter.
struct StateKind {
  std::string name;  // "value"; "exp_avg"
  FlatRanges held;   // the part of the flat block that is here
  float* data;       // in the order of `held`
  Residence residence = Residence::device;

  HeldNumbers numbers() const { return {held, data, residence}; }
};

struct LocalState {
  const ParameterSet* parameters;
  std::vector<StateKind> kinds;  // values first
};

// `parameters` and `optimizer` must outlive it, and stay where they are.
LocalState local_state(const ParameterSet& parameters, const Optimizer& optimizer);

// A box of one of a parameter's tensors that this rank holds.
struct HeldBox {
  std::string tensor;  // its global name
  Shape global;
  const Parameter* parameter;
  TensorBox box;
};

// Everything in `ranges` of the flat block, parameter by parameter, piece by piece; no pads.
std::vector<HeldBox> boxes_in(const ParameterSet& parameters, const FlatRanges& ranges);

}  // namespace weft
