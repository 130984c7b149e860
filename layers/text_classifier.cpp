#include "layers/text_classifier.hpp"

#include <utility>

#include "layers/column_linear.hpp"
#include "layers/layer_norm.hpp"
#include "layers/mean_pool.hpp"

namespace weft {

StageModel make_text_classifier(const TextClassifierSpec& spec, const StagePart& part,
                                ParameterSet& parameters, TensorParallel& tp) {
  const TextSpec& text = spec.text;
  std::vector<NamedLayer> layers = make_text_layers(text, Sees::real, part, parameters, tp);
  std::optional<CrossEntropy> loss;
  if (part.is_last) {
    layers.push_back(
        {"final_norm", std::make_unique<LayerNorm>("final_norm", parameters, text.hidden)});
    layers.push_back(
        {"mean_pool", std::make_unique<MeanPool>("mean_pool", tp, text.hidden, true)});
    layers.push_back(
        {"head", std::make_unique<ColumnLinear>("head", parameters, tp, text.hidden,
                                                spec.num_classes, spec.padded_classes)});
    loss.emplace("loss", tp, spec.num_classes);
  }
  return StageModel(tp, part.is_first, {.tokens_per_sample = text.tokens, .hidden = text.hidden},
                    std::move(layers), std::move(loss));
}

}  // namespace weft
