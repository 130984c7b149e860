#include "layers/token_embedding.hpp"

#include "layers/position_embedding.hpp"
#include "layers/vocab_embedding.hpp"

namespace weft {

void add_token_embedding(const Vocabulary& vocabulary, const TransformerSpec& blocks,
                         ParameterSet& parameters, TensorParallel& tp,
                         std::vector<NamedLayer>& layers) {
  layers.push_back({"embedding", std::make_unique<VocabEmbedding>(
                                     "embedding", parameters, tp, vocabulary.size,
                                     vocabulary.padded, blocks.tokens, blocks.hidden)});
  layers.push_back({"position", std::make_unique<PositionEmbedding>("position", parameters, tp,
                                                                    blocks.tokens, blocks.hidden)});
  layers.push_back({"dropout", make_dropout(blocks, 0)});
}

}  // namespace weft
