// Which algorithm runs a collective. A function of the record and the group's size alone, so that
// all ranks choose alike without a message.
#pragma once

#include <string_view>

#include "parallel/comm/channel.hpp"
#include "parallel/comm/collective.hpp"
#include "parallel/comm/collective_task.hpp"

namespace weft {

enum class Algorithm { automatic, tree_direct, tree_small, tree_halving, ring, direct, binomial };
std::string_view name_of(Algorithm algorithm);

// What start() takes for `what` in a group of `num_ranks` > 1.
Algorithm choose(const AllReduce& what, int num_ranks);
Algorithm choose(const ReduceScatter& what, int num_ranks);
Algorithm choose(const AllGather& what, int num_ranks);
Algorithm choose(const Broadcast& what, int num_ranks);
Algorithm choose(const Send& what, int num_ranks);
Algorithm choose(const Receive& what, int num_ranks);

// True where `algorithm` can run `what` under its order of sums. In fast mode num_leaves =
// num_ranks, and the tree algorithms are legal too.
bool can_run(Algorithm algorithm, const CollectiveRecord& what, int num_ranks);

// Starts `what`; `algorithm` automatic: the chosen one. A group of one copies and is done.
TaskPointer make_task(Channel& channel, const CollectiveRecord& what, Algorithm algorithm);

}  // namespace weft
