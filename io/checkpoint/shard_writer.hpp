// Writes what one rank is responsible for as an HDF5 file, in one pass over the memory: copied,
// hashed and fingerprinted block by block while a thread writes. The memory is the state's own, or
// a copy (staged_state), which another thread than the rank's main one may write.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/flat_ranges.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "io/checkpoint/local_state.hpp"
#include "io/checkpoint/shard_record.hpp"
#include "io/checkpoint/work_pace.hpp"

namespace weft {

// What this rank writes of each kind (parallel/data/write_share).
FlatRanges share_to_write(const ParameterSet& parameters, int tp_rank, int tp_size, int dp_rank,
                          int dp_size);
// The same where dp ranks own slices (ZeRO): `slice` is this rank's.
FlatRanges share_to_write(const ParameterSet& parameters, int tp_rank, int tp_size,
                          const FlatRanges& slice);

class ShardWriter {
 public:
  // Local. Plans a shard: `share` of every kind in `state`, which must hold it. A plan like the one
  // before, as in the next save of a run, costs nearly nothing.
  void plan(const LocalState& state, const FlatRanges& share,
            const std::vector<hdf5::Attribute>& root);

  std::uint64_t num_bytes() const { return layout().num_bytes; }
  // Writes the planned shard as file `name` into `folder`, synced. Throws Error(failed) where the
  // system refuses, or where a stop is asked for on the way. `pace`, if any, is asked between two
  // blocks.
  ShardRecord write(const std::string& folder, const std::string& name,
                    const std::stop_token& stop = {}, WorkPace* pace = nullptr) const;

 private:
  // One dataset: a box of a tensor.
  struct Piece {
    const StateKind* kind;
    HeldBox held;
  };
  class Pass;

  void plan_pieces(const FlatRanges& share);
  std::vector<hdf5::Dataset> datasets() const;
  const hdf5::FileLayout& layout() const { return skeleton_->layout(); }

  LocalState state_{nullptr, {}};
  std::vector<Piece> pieces_;
  std::vector<hdf5::Dataset> datasets_;  // those of the skeleton
  std::optional<hdf5::Skeleton> skeleton_;
};

}  // namespace weft
