// Puts a checkpoint's numbers into a rank's memory, whatever layout wrote it: the rank reads the
// blocks that hold something of what it holds, and copies.
#pragma once

#include <cstdint>
#include <vector>

#include "io/checkpoint/checkpoint_reader.hpp"
#include "io/checkpoint/local_state.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

// Of one tensor of the index: what the elements that a rank holds of it add up to.
struct TensorSum {
  std::uint64_t fingerprint = 0;
  std::uint64_t num_elements = 0;
};

struct LoadResult {
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_held = 0;
  // By the index's tensors; taken from the memory where the numbers now are.
  std::vector<TensorSum> sums;
};

// Which of the index's tensors this rank has a part of: '1' or '0' for each. Local. Throws
// Error(usage) where the checkpoint is of another model: it lacks a tensor that `state` has, or has
// it with another shape.
std::string find_held(const Checkpoint& checkpoint, const LocalState& state);

// Collective over the axes. The other way round, which one rank cannot tell, since a stage has but
// its own tensors: empty, or the fault that no rank has some tensor, on all ranks alike. To be
// asked before load_state: the checkpoint is of another model, and nothing of it may be used.
std::string find_unknown(const Checkpoint& checkpoint, std::string is_held,
                         const std::vector<Communicator*>& axes);

// Local. Overwrites all that `state` holds. On the way it verifies what of files rank, rank +
// num_ranks, .. is no tensor's: that does not matter to a load, but a checkpoint with an altered
// byte is not what was saved. Throws Error(usage) where the checkpoint is of another model (a
// tensor is missing or has another shape), Error(data) where a block is not what was written; then
// some of the state is overwritten.
LoadResult load_state(const Checkpoint& checkpoint, const LocalState& state, int rank = 0,
                      int num_ranks = 1);

// Collective over the axes; the sums of all ranks against the fingerprints of the index: proof that
// the state is the saved one, bit for bit, on this layout. Replicas are added like everything,
// since the sum of k equal copies is k times the fingerprint. Empty, or the fault, on all ranks
// alike.
std::string compare_fingerprints(const Checkpoint& checkpoint, std::vector<TensorSum> sums,
                                 const std::vector<Communicator*>& axes);

}  // namespace weft
