// What one rank holds of a run's state, tensor by tensor, and which ranks hold copies of it: what
// replica_check compares.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device.hpp"
#include "core/optimizer.hpp"
#include "core/parameter.hpp"
#include "parallel/mesh.hpp"

namespace weft {

// One kind of number of one parameter, on this rank. Elements count as in its local storage.
struct HeldTensor {
  const Parameter* parameter;
  std::string kind;        // empty: the values; "exp_avg"
  const FlatRanges* held;  // the part of the flat block that is here
  float* data;             // device memory, in the order of `held`

  bool is_state() const { return !kind.empty(); }
  // "block.0.up.weight", "exp_avg of block.0.up.weight".
  std::string name() const;
  // Without pads and gaps. Equal in copies; those of the parts of one copy add up.
  std::uint64_t fingerprint() const;
  // Of each 1024 elements of local storage; 0 where none is here.
  std::vector<std::uint64_t> block_fingerprints() const;
  // The bits of elements [1024 block, ..) of local storage; pads, gaps and what is not here are 0.
  // Empty where nothing is here.
  std::vector<std::uint32_t> block(index_t number) const;
  // "block.0.q.weight [3, 17]": element `local` in global names and indices.
  std::string element_name(index_t local) const;
};

// Values first, in the order of the parameters. `all_elements`: memory for the answer to use, as
// long as it is used.
std::vector<HeldTensor> held_tensors(const ParameterSet& parameters, const Optimizer& optimizer,
                                     const FlatRanges& all_elements);

// World ranks that hold one copy of a tensor together.
using Copy = std::vector<int>;
// The copies that must be equal. A copy's first rank is its lowest.
using CopyGroup = std::vector<Copy>;

// Of a tensor of stage `pp`. `is_divided`: each dp rank holds a part of what a tp rank has. Groups
// of one copy are left out.
std::vector<CopyGroup> copies_of(const MeshShape& shape, int pp, bool is_replicated,
                                 bool is_divided);
// Of a tied parameter's values: of the first stage and the last, with dp copies on each. None where
// one stage is both.
std::vector<CopyGroup> tied_copies_of(const MeshShape& shape);

}  // namespace weft
