// A copy of what a rank writes of its state, in memory that is taken once and used by every save:
// training goes on while the copy is written.
#pragma once

#include "core/flat_ranges.hpp"
#include "core/host_block.hpp"
#include "io/checkpoint/local_state.hpp"

namespace weft {

class StagedState {
 public:
  // `share` of every kind of `state`, which must hold it: 4 bytes x its elements x kinds of host
  // memory (MemoryKind::workspace of `arena`), all of it touched, so that no save pays for that.
  StagedState(Arena& arena, const LocalState& state, FlatRanges share);

  // Local; by the rank's main thread, which copies from the device. `state` has the kinds and the
  // parameters of the first one; the copy of before is gone.
  void copy_from(const LocalState& state);

  // The copy, as a state that holds nothing else: no word of it lies in the state it was made of,
  // and it may be read by any thread. Names and boxes are those of the first one's parameters.
  const LocalState& state() const { return copy_; }
  const FlatRanges& share() const { return share_; }
  index_t num_bytes() const { return memory_.num_bytes(); }

 private:
  FlatRanges share_;
  HostBlock memory_;
  LocalState copy_;
};

}  // namespace weft
