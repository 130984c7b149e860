// The text encoder with a class for a whole text: the one place that says which layers it has and
// how each is cut. Texts are padded to one number of tokens; Pass::lengths says which are real.
//
//   x [samples, tokens] i32 --embedding (vocab-parallel)-->  [t, h], t = samples x tokens
//   + position, dropout
//   layers times a transformer block; a token sees the real tokens of its text
//   final_norm -> mean over real tokens                   -> [samples, h]
//   head (column-parallel, classes padded)                -> cross entropy
#pragma once

#include "layers/stage_model.hpp"

namespace weft {

struct TextClassifierSpec {
  index_t vocabulary = 0;         // ids are below it, those of padding too
  index_t padded_vocabulary = 0;  // a multiple of the plan's shards
  index_t tokens = 0;             // of a text, padding included
  index_t layers = 4;
  index_t hidden = 192;
  index_t heads = 8;  // divide hidden; a multiple of the plan's shards
  index_t feed_forward = 768;
  float dropout = 0.0f;
  index_t num_classes = 4;
  index_t padded_classes = 4;  // a multiple of the plan's shards
};

// The stage `part` of it: the first begins with embedding and positions, the last ends with
// final_norm, pooling, head and loss; every stage needs Microbatch::lengths. Adds its parameters to
// `parameters`, which must still be allocated. `tp` must outlive the model.
StageModel make_text_classifier(const TextClassifierSpec& spec, const StagePart& part,
                                ParameterSet& parameters, TensorParallel& tp);

}  // namespace weft
