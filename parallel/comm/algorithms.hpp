// All algorithms, one .cpp file each. Arguments have been checked by Communicator::start. The three
// tree algorithms make the same additions, so that a choice between them never changes a bit.
#pragma once

#include <span>
#include <vector>

#include "core/range.hpp"
#include "parallel/comm/channel.hpp"
#include "parallel/comm/collective.hpp"
#include "parallel/comm/collective_task.hpp"

namespace weft {

// tree_direct.cpp: every rank sends its nodes of slice o to owner o, who folds them.
TaskPointer make_tree_direct(Channel& channel, const ReduceScatter& what);
TaskPointer make_tree_direct(Channel& channel, const AllReduce& what);

// tree_small.cpp: every rank sends all its nodes to all, who fold them alone.
TaskPointer make_tree_small(Channel& channel, const AllReduce& what);

// tree_halving.cpp: vector halving with doubled distance, then the way back.
bool tree_halving_fits(int num_ranks, index_t num_leaves);
TaskPointer make_tree_halving(Channel& channel, const AllReduce& what);

// ring.cpp: sums in ring order. Fast mode only.
TaskPointer make_ring(Channel& channel, const ReduceScatter& what);
TaskPointer make_ring(Channel& channel, const AllReduce& what);

// all_gather.cpp: everyone sends to all, or passes on what came from the left.
TaskPointer make_direct(Channel& channel, const AllGather& what);
TaskPointer make_ring(Channel& channel, const AllGather& what);
TaskPointer make_all_gather(Channel& channel, const AllGather& what);  // whichever suits the size

// broadcast.cpp: a binomial tree of ranks.
TaskPointer make_binomial(Channel& channel, const Broadcast& what);

// message.cpp: one message between two members.
TaskPointer make_message(Channel& channel, const Send& what);
TaskPointer make_message(Channel& channel, const Receive& what);

// What more than one of them needs (algorithms.cpp).

// This rank's leaves, and the nodes they make up, under the record's order of sums.
Range leaves_of(int rank, int num_ranks, index_t num_leaves);
// size + 1 positions that cut `count` elements evenly, at multiples of 16 elements.
std::vector<index_t> even_cuts(index_t count, int num_ranks);
// The all-gather that ends an all-reduce: rank r has finished elements cuts[r]..cuts[r+1] of
// output.
AllGather gather_of_slices(const AllReduce& what, const std::vector<index_t>& cuts);

inline std::span<std::byte> bytes_at(void* base, index_t begin, index_t end) {
  return {static_cast<std::byte*>(base) + begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace weft
