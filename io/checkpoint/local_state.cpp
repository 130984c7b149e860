#include "io/checkpoint/local_state.hpp"

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
    for (index_t shard = p->spec.owned().begin; shard < p->spec.owned().end; ++shard) {
      // With its pads, which may lie between elements; boxes have none.
      const index_t begin = p->offset + p->spec.offset(shard);
      ranges.for_each_in({begin, begin + p->spec.block(shard).num_elements()},
                         [&](Range flat, index_t) {
                           const Range here{flat.begin - p->offset, flat.end - p->offset};
                           for (const TensorBox& box : boxes_of(*p, shard, here)) {
                             const auto& tensor = tensors[static_cast<std::size_t>(box.tensor)];
                             boxes.push_back({tensor.name, tensor.global, p.get(), box});
                           }
                         });
    }
  }
  return boxes;
}

}  // namespace weft
