// The step from a rank's own tree nodes to the sum over all ranks, for device memory: what
// activations and token-block gradients over tp have in common.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/context.hpp"
#include "core/reduce_tree.hpp"
#include "core/tensor.hpp"
#include "parallel/comm/communicator.hpp"

namespace weft {

// Collective over `group`. `nodes`: this rank's nodes of the tree over `num_leaves` leaves, at
// least one, `count` elements each. Afterwards the first holds the sum over all ranks; the others
// are used up. A group of one, which holds the root, sends nothing.
void reduce_nodes(Context& context, Communicator& group, std::string_view name, Order order,
                  index_t num_leaves, std::span<float* const> nodes, index_t count);

// The same for tensors of equal size. Returns the sum, in the memory of the first node.
Tensor reduce_nodes(Context& context, Communicator& group, std::string_view name, Order order,
                    index_t num_leaves, const reduce_tree::Stack<Tensor>& nodes);

// The same for nodes of two dims, but each rank gets rows [row_cuts[rank], row_cuts[rank + 1]) of
// the sum alone.
Tensor reduce_scatter_nodes(Context& context, Communicator& group, std::string_view name,
                            Order order, index_t num_leaves,
                            const reduce_tree::Stack<Tensor>& nodes, std::vector<index_t> row_cuts);

}  // namespace weft
