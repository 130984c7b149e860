#include "layers/gpt.hpp"

#include <utility>

#include "layers/column_linear.hpp"
#include "layers/layer_norm.hpp"
#include "layers/vocab_embedding.hpp"

namespace weft {

namespace {

std::unique_ptr<Layer> make_head(const TextSpec& spec, ParameterSet& parameters, TensorParallel& tp,
                                 ParameterSet* copies) {
  if (copies == nullptr) {
    return std::make_unique<ColumnLinear>("head", parameters, tp, spec.hidden, spec.vocabulary,
                                          spec.padded_vocabulary, Epilogue::none);
  }
  Parameter& table = VocabEmbedding::add_table(tied_table, *copies, tp, spec.vocabulary,
                                               spec.padded_vocabulary, spec.hidden);
  return std::make_unique<ColumnLinear>("head", table, tp);
}

}  // namespace

StageModel make_gpt(const TextSpec& spec, const StagePart& part, ParameterSet& parameters,
                    TensorParallel& tp, ParameterSet* copies) {
  std::vector<NamedLayer> layers = make_text_layers(spec, Sees::earlier, part, parameters, tp);
  std::optional<CrossEntropy> loss;
  if (part.is_last) {
    layers.push_back(
        {"final_norm", std::make_unique<LayerNorm>("final_norm", parameters, spec.hidden)});
    layers.push_back({"head", make_head(spec, parameters, tp, copies)});
    loss.emplace("loss", tp, spec.vocabulary);
  }
  return StageModel(tp, part.is_first, {.tokens_per_sample = spec.tokens, .hidden = spec.hidden},
                    std::move(layers), std::move(loss));
}

}  // namespace weft
