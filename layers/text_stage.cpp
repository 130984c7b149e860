#include "layers/text_stage.hpp"

#include "layers/position_embedding.hpp"
#include "layers/vocab_embedding.hpp"

namespace weft {

std::vector<NamedLayer> make_text_layers(const TextSpec& spec, Sees sees, const StagePart& part,
                                         ParameterSet& parameters, TensorParallel& tp) {
  const TransformerSpec blocks{.tokens = spec.tokens,
                               .hidden = spec.hidden,
                               .heads = spec.heads,
                               .feed_forward = spec.feed_forward,
                               .dropout = spec.dropout,
                               .sees = sees};
  std::vector<NamedLayer> layers;
  if (part.is_first) {
    layers.push_back({"embedding", std::make_unique<VocabEmbedding>(
                                       "embedding", parameters, tp, spec.vocabulary,
                                       spec.padded_vocabulary, spec.hidden)});
    layers.push_back({"position", std::make_unique<PositionEmbedding>("position", parameters, tp,
                                                                      spec.tokens, spec.hidden)});
    layers.push_back({"dropout", make_dropout(blocks, 0)});
  }
  for (index_t i = part.blocks.begin; i < part.blocks.end; ++i)
    add_transformer_block(blocks, i, parameters, tp, layers);
  return layers;
}

}  // namespace weft
