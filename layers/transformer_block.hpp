// A pre-norm block, the same in all transformers here:
//
//   h + dropout(proj(attention(qkv(norm1(h)))))    qkv column-, proj row-parallel
//   h + dropout(down(gelu(up(norm2(h)))))          up column-, down row-parallel
#pragma once

#include <memory>
#include <vector>

#include "layers/attention.hpp"
#include "layers/stage_model.hpp"

namespace weft {

// What all blocks of a model have in common.
struct TransformerSpec {
  index_t tokens = 0;  // of a sample at most
  index_t hidden = 0;
  index_t heads = 0;  // divide hidden; a multiple of the plan's shards
  index_t feed_forward = 0;
  float dropout = 0.0f;
  Sees sees = Sees::all;
};

// Dropouts count through the whole model: 0 after the positions, then 1 + 2i and 2 + 2i in block i.
std::unique_ptr<Layer> make_dropout(const TransformerSpec& spec, index_t number);

// Adds block `number` to the end of `layers` and its parameters, "block.<number>.*", to
// `parameters`. `tp` must outlive the layers.
void add_transformer_block(const TransformerSpec& spec, index_t number, ParameterSet& parameters,
                           TensorParallel& tp, std::vector<NamedLayer>& layers);

}  // namespace weft
