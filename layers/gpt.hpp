// The generative transformer (Radford et al., "Language models are unsupervised multitask
// learners", 2019, section 2.3): the one place that says which layers it has and how each is cut.
// Each token's logits are of the token that follows it.
//
//   x [samples, tokens] i32 --embedding (vocab-parallel)-->  [t, h], t = samples x tokens
//   + position, dropout
//   layers times a transformer block; a token sees itself and earlier ones
//   final_norm -> head (vocab-parallel, no bias)          -> cross entropy of all t rows
#pragma once

#include "layers/text_stage.hpp"

namespace weft {

// What embedding and head share where they are tied.
inline constexpr const char* tied_table = "embedding.weight";

// The stage `part` of it: the first begins with embedding and positions, the last ends with
// final_norm, head and loss, whose label rows are tokens. Adds its parameters to `parameters`,
// which must still be allocated. `tp` must outlive the model.
//
// With `copies` embedding and head are tied: the head has no weight of its own but the last stage's
// copy of the embedding's, with its name, which goes to `copies` (also of the stage that is first,
// too). It begins with equal values; to keep them so, and to add the gradients of both uses, is
// parallel/data/tied_parameter's.
StageModel make_gpt(const TextSpec& spec, const StagePart& part, ParameterSet& parameters,
                    TensorParallel& tp, ParameterSet* copies = nullptr);

}  // namespace weft
