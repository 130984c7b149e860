#include "layers/layer.hpp"

namespace weft {

Activation Activation::like(Context& context) const {
  return {spec, rows, Tensor(context.arena, MemoryKind::activations, data.shape())};
}

Activation Activation::whole(Context& context, const Rows& rows, index_t num_features) {
  return {ShardSpec::replicated({rows.total, num_features}), rows,
          Tensor(context.arena, MemoryKind::activations, {rows.mine.size(), num_features})};
}

Activation Activation::cut(Context& context, const TensorParallel& tp, index_t num_rows,
                           index_t num_features) {
  const ShardSpec spec =
      ShardSpec::cut({num_rows, num_features}, 1, num_features, tp.num_pieces(), tp.owned());
  return {spec, Rows::all(num_rows),
          Tensor(context.arena, MemoryKind::activations, {spec.local_elements()})};
}

}  // namespace weft
