#include "io/checkpoint/local_state.hpp"

#include "core/norm_block.hpp"

namespace weft {

LocalState local_state(const ParameterSet& parameters, const Optimizer& optimizer) {
  LocalState state{&parameters, {}};
  state.kinds.push_back({"value", everything_of(parameters), parameters.values()});
  for (const auto& one : optimizer.states())
    state.kinds.push_back({std::string(one.name), optimizer.owned(), one.data});
  return state;
}

std::vector<HeldBox> boxes_in(const ParameterSet& parameters, const FlatRanges& ranges) {
  std::vector<HeldBox> boxes;
  for (const auto& p : parameters.all()) {
    const std::vector<LogicalTensor> tensors = logical_tensors(*p);
    for_each_shard(p->spec, [&](index_t shard, Range local) {
      ranges.for_each_in({p->offset + local.begin, p->offset + local.end},
                         [&](Range flat, index_t) {
                           const Range here{flat.begin - p->offset, flat.end - p->offset};
                           for (const TensorBox& box : boxes_of(*p, shard, here)) {
                             const auto& tensor = tensors[static_cast<std::size_t>(box.tensor)];
                             boxes.push_back({tensor.name, tensor.global, p.get(), box});
                           }
                         });
    });
  }
  return boxes;
}

}  // namespace weft
