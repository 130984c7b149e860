// What every model of text has before its head: the rows of its tokens, positions, a dropout, and
// blocks.
#pragma once

#include <vector>

#include "layers/stage_model.hpp"
#include "layers/transformer_block.hpp"

namespace weft {

struct TextSpec {
  index_t vocabulary = 0;         // ids are below it, those of padding too
  index_t padded_vocabulary = 0;  // a multiple of the plan's shards
  index_t tokens = 0;             // of a sample at most, padding included
  index_t hidden = 0;
  index_t heads = 0;  // divide hidden; a multiple of the plan's shards
  index_t feed_forward = 0;
  float dropout = 0.0f;
};

// Of the stage `part`: on the first one "embedding", "position" and "dropout" (number 0), then its
// blocks. Adds the parameters "embedding.weight", "position" and the blocks' to `parameters`. `tp`
// must outlive the layers.
std::vector<NamedLayer> make_text_layers(const TextSpec& spec, Sees sees, const StagePart& part,
                                         ParameterSet& parameters, TensorParallel& tp);

}  // namespace weft
