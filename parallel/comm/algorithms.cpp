#include "parallel/comm/algorithms.hpp"

#include <algorithm>

#include "parallel/comm/add.hpp"

namespace weft {

Range leaves_of(int rank, int num_ranks, index_t num_leaves) {
  return part_of(rank, num_ranks, num_leaves);
}

std::vector<index_t> even_cuts(index_t count, int num_ranks) {
  // Whole cache lines: no two ranks' slices share one, and copies stay aligned.
  constexpr index_t block = 16;
  const index_t num_blocks = (count + block - 1) / block;
  std::vector<index_t> cuts;
  for (int rank = 0; rank <= num_ranks; ++rank) {
    cuts.push_back(std::min(count, part_of(rank, num_ranks, num_blocks).begin * block));
  }
  return cuts;
}

AllGather gather_of_slices(const AllReduce& what, const std::vector<index_t>& cuts) {
  AllGather gather;
  gather.output = what.output;
  for (const index_t cut : cuts) gather.cuts.push_back(cut * bytes_of(what.precision));
  return gather;  // input: null, the own slice lies in the output already
}

}  // namespace weft
