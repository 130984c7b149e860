// The text encoder with a class for a whole text: the one place that says which layers it has and
// how each is cut. The texts of a pass are padded to one number of tokens; Pass::lengths says which
// are real.
//
//   x [samples, tokens] i32 --embedding (vocab-parallel)-->  [t, h], t = samples x tokens
//   + position, dropout
//   layers times a transformer block; a token sees the real tokens of its text
//   final_norm -> mean over real tokens                   -> [samples, h]
//   head (column-parallel, classes padded)                -> cross entropy
#pragma once

#include "layers/text_stage.hpp"

namespace weft {

struct TextClassifierSpec {
  TextSpec text;
  index_t num_classes = 4;
  index_t padded_classes = 4;  // a multiple of the plan's shards
};

// The stage `part` of it: the first begins with embedding and positions, the last ends with
// final_norm, pooling, head and loss; every stage needs Microbatch::lengths. Adds its parameters to
// `parameters`, which must still be allocated. `tp` must outlive the model.
StageModel make_text_classifier(const TextClassifierSpec& spec, const StagePart& part,
                                ParameterSet& parameters, TensorParallel& tp);

}  // namespace weft
