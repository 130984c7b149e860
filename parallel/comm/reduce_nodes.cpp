#include "parallel/comm/reduce_nodes.hpp"

#include <string>
#include <utility>
#include <vector>

namespace weft {

Tensor reduce_nodes(Context& context, Communicator& group, std::string_view name, Order order,
                    index_t num_leaves, const reduce_tree::Stack<Tensor>& nodes) {
  Tensor first = nodes.nodes().front().value;
  if (group.size() == 1) return first;
  context.device.fence();
  std::vector<HostMirror> mirrors;
  for (const auto& node : nodes.nodes())
    mirrors.emplace_back(node.value.raw(), node.value.num_bytes());
  AllReduce sum{.order = order,
                .num_leaves = num_leaves,
                .count = first.num_elements(),
                .inputs = {},
                .output = mirrors[0].data()};
  for (auto& mirror : mirrors) sum.inputs.push_back(mirror.data());
  group.start({std::string(name), std::move(sum)}).wait();
  mirrors[0].to_device();
  return first;
}

}  // namespace weft
