// The vision transformer: the one place that says which layers it has and how each is cut.
//
//   x [samples, 3072] --patches--> patch (row-parallel)      -> [t, h], t = samples x tokens
//   + position, dropout
//   layers times:  h + dropout(proj(attention(qkv(norm1(h)))))  qkv column-, proj row-parallel
//                  h + dropout(down(gelu(up(norm2(h)))))        up column-, down row-parallel
//   final_norm -> mean over tokens                           -> [samples, h]
//   head (column-parallel, classes padded)                   -> cross entropy
#pragma once

#include "core/kernels/tokens.hpp"
#include "layers/stage_model.hpp"

namespace weft {

struct VitSpec {
  kernels::PatchShape patches;  // CIFAR-10's images in patches of 4
  index_t layers = 6;
  index_t hidden = 192;
  index_t heads = 8;  // divide hidden; a multiple of the plan's shards
  index_t feed_forward = 768;
  float dropout = 0.0f;
  index_t num_classes = 10;
  index_t padded_classes = 12;  // a multiple of the plan's shards
};

// The stage `part` of it: the first begins with patches, their embedding and positions, the last
// ends with final_norm, pooling, head and loss. Adds its parameters to `parameters`, which must
// still be allocated. `tp` must outlive the model.
StageModel make_vit_classifier(const VitSpec& spec, const StagePart& part, ParameterSet& parameters,
                               TensorParallel& tp);

}  // namespace weft
