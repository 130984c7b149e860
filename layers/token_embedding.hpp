// What every model of text begins with: the rows of its tokens, positions, a dropout.
#pragma once

#include <vector>

#include "layers/stage_model.hpp"
#include "layers/transformer_block.hpp"

namespace weft {

struct Vocabulary {
  index_t size = 0;
  index_t padded = 0;  // a multiple of the plan's shards
};

// Adds the layers "embedding", "position" and "dropout" (number 0) to the end of `layers`, and the
// parameters "embedding.weight" and "position". `tp` must outlive the layers.
void add_token_embedding(const Vocabulary& vocabulary, const TransformerSpec& blocks,
                         ParameterSet& parameters, TensorParallel& tp,
                         std::vector<NamedLayer>& layers);

}  // namespace weft
