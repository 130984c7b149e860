#include "core/shard_spec.hpp"

#include <fmt/format.h>

#include <cassert>

namespace weft {

Box whole_box(const Shape& shape) {
  const int last = shape.num_dims() - 1;
  return {{0, last == 0 ? 1 : shape[0]}, {0, shape[last]}};
}

ShardSpec ShardSpec::replicated(const Shape& global) {
  ShardSpec spec;
  spec.global_ = global;
  return spec;
}

ShardSpec ShardSpec::cut(const Shape& global, int dim, index_t padded_extent, index_t num_shards,
                         Range owned) {
  assert(global.num_dims() <= 2 && dim < global.num_dims() && padded_extent >= global[dim]);
  assert(owned.begin >= 0 && owned.end <= num_shards);
  ShardSpec spec;
  spec.global_ = global;
  spec.dim_ = dim;
  spec.padded_ = padded_extent;
  spec.num_shards_ = num_shards;
  spec.owned_ = owned;
  return spec;
}

Box ShardSpec::block(index_t shard) const {
  Box box = whole_box(global_);
  if (is_replicated()) return box;
  (dim_ + 1 == global_.num_dims() ? box.cols : box.rows) = piece(shard);
  return box;
}

Box ShardSpec::valid(index_t shard) const {
  Box box = block(shard);
  const Box whole = whole_box(global_);
  box.rows = intersection(box.rows, whole.rows);
  box.cols = intersection(box.cols, whole.cols);
  return box;
}

index_t ShardSpec::offset(index_t shard) const {
  index_t offset = 0;
  for (index_t s = owned_.begin; s < shard; ++s)
    offset += round_up(block(s).num_elements(), block_alignment);
  return offset;
}

index_t ShardSpec::local_elements() const { return offset(owned_.end); }

index_t ShardSpec::held_elements() const {
  index_t held = 0;
  for (index_t s = owned_.begin; s < owned_.end; ++s) held += valid(s).num_elements();
  return held;
}

std::string ShardSpec::text() const {
  if (is_replicated()) return global_.text() + " replicated";
  return fmt::format("{} dim {} in {}, pieces {}-{}", global_.text(), dim_, num_shards_,
                     owned_.begin, owned_.end - 1);
}

}  // namespace weft
