#include "parallel/comm/reduce_nodes.hpp"

#include <string>
#include <utility>
#include <vector>

namespace weft {

void reduce_nodes(Context& context, Communicator& group, std::string_view name, Order order,
                  index_t num_leaves, std::span<float* const> nodes, index_t count) {
  if (group.size() == 1) return;
  context.device.fence();
  std::vector<HostMirror> mirrors;
  for (float* node : nodes) mirrors.emplace_back(node, count * index_t{sizeof(float)});
  AllReduce sum{.order = order,
                .num_leaves = num_leaves,
                .count = count,
                .inputs = {},
                .output = mirrors[0].data()};
  for (auto& mirror : mirrors) sum.inputs.push_back(mirror.data());
  group.start({std::string(name), std::move(sum)}).wait();
  mirrors[0].to_device();
}

Tensor reduce_nodes(Context& context, Communicator& group, std::string_view name, Order order,
                    index_t num_leaves, const reduce_tree::Stack<Tensor>& nodes) {
  std::vector<float*> values;
  for (const auto& node : nodes.nodes()) values.push_back(node.value.data());
  Tensor first = nodes.nodes().front().value;
  reduce_nodes(context, group, name, order, num_leaves, values, first.num_elements());
  return first;
}

Tensor reduce_scatter_nodes(Context& context, Communicator& group, std::string_view name,
                            Order order, index_t num_leaves,
                            const reduce_tree::Stack<Tensor>& nodes,
                            std::vector<index_t> row_cuts) {
  const Tensor& first = nodes.nodes().front().value;
  if (group.size() == 1) return first;
  context.device.fence();
  std::vector<HostMirror> mirrors;
  for (const auto& node : nodes.nodes())
    mirrors.emplace_back(node.value.raw(), node.value.num_bytes());
  const auto me = static_cast<std::size_t>(group.rank());
  const index_t n = first.shape()[1];
  Tensor slice(context.arena, MemoryKind::activations, {row_cuts[me + 1] - row_cuts[me], n});
  HostMirror output = HostMirror::for_receiving(slice.raw(), slice.num_bytes());
  ReduceScatter sum{.order = order,
                    .num_leaves = num_leaves,
                    .count = first.num_elements(),
                    .cuts = std::move(row_cuts),
                    .inputs = {},
                    .output = output.data()};
  for (index_t& cut : sum.cuts) cut *= n;
  for (auto& mirror : mirrors) sum.inputs.push_back(mirror.data());
  group.start({std::string(name), std::move(sum)}).wait();
  output.to_device();
  return slice;
}

}  // namespace weft
