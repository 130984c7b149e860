// Copies between a whole tensor on the host and the local storage that a ShardSpec describes. Plain
// loops over the spec's boxes: what the engine never does, since no rank sees a whole tensor.
#pragma once

#include <vector>

#include "core/shard_spec.hpp"

namespace weft::testing {

// Calls place(global index, local index) for each element that a rank holds and that is no pad.
template <class Place>
void for_each_held(const ShardSpec& spec, const Place& place) {
  const index_t row_length = spec.global()[spec.global().num_dims() - 1];
  for (index_t shard = spec.owned().begin; shard < spec.owned().end; ++shard) {
    const Box stored = spec.block(shard);
    const Box valid = spec.valid(shard);
    for (index_t row = valid.rows.begin; row < valid.rows.end; ++row) {
      for (index_t col = valid.cols.begin; col < valid.cols.end; ++col) {
        const index_t in_block =
            (row - stored.rows.begin) * stored.cols.size() + col - stored.cols.begin;
        place(row * row_length + col, spec.offset(shard) + in_block);
      }
    }
  }
}

template <class T>
void scatter(const ShardSpec& spec, const std::vector<T>& global, T* local) {
  for_each_held(
      spec, [&](index_t from, index_t to) { local[to] = global[static_cast<std::size_t>(from)]; });
}

template <class T>
void gather(const ShardSpec& spec, const T* local, std::vector<T>& global) {
  for_each_held(
      spec, [&](index_t to, index_t from) { global[static_cast<std::size_t>(to)] = local[from]; });
}

}  // namespace weft::testing
