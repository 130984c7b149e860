// The MLP classifier: the one place that says which layers it has and how each is cut.
//
//   x [t, 3072] --split--> stem (row-parallel)            -> [t, h]
//   layers times:  h + dropout(down(gelu(up(norm(h)))))      up column-, down row-parallel
//   final_norm -> head (column-parallel, classes padded)  -> cross entropy over classes cut on tp
#pragma once

#include "layers/stage_model.hpp"

namespace weft {

struct MlpSpec {
  index_t input_features = 3072;
  index_t layers = 2;
  index_t hidden = 192;
  index_t feed_forward = 768;
  float dropout = 0.0f;
  index_t num_classes = 10;
  index_t padded_classes = 12;  // a multiple of the plan's shards
};

// The stage `part` of it: the first begins with the stem, the last ends with final_norm, head and
// loss. Adds its parameters to `parameters`, which must still be allocated. `tp` must outlive the
// model.
StageModel make_mlp_classifier(const MlpSpec& spec, const StagePart& part, ParameterSet& parameters,
                               TensorParallel& tp);

}  // namespace weft
