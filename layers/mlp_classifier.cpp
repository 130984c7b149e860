#include "layers/mlp_classifier.hpp"

#include <string>

#include "layers/column_linear.hpp"
#include "layers/dropout.hpp"
#include "layers/feed_forward.hpp"
#include "layers/layer_norm.hpp"
#include "layers/row_linear.hpp"
#include "layers/split_features.hpp"

namespace weft {

StageModel make_mlp_classifier(const MlpSpec& spec, const StagePart& part, ParameterSet& parameters,
                               TensorParallel& tp) {
  std::vector<NamedLayer> layers;
  if (part.is_first) {
    layers.push_back({"input", std::make_unique<SplitFeatures>(tp)});
    layers.push_back(
        {"stem", std::make_unique<RowLinear>("stem", parameters, tp, spec.input_features,
                                             spec.hidden, false)});
  }
  for (index_t i = part.blocks.begin; i < part.blocks.end; ++i) {
    const std::string name = "block." + std::to_string(i);
    layers.push_back(
        {name,
         make_feed_forward(
             {.block = name, .norm = "norm", .hidden = spec.hidden, .width = spec.feed_forward},
             parameters, tp, std::make_unique<Dropout>(spec.dropout, i, 1, spec.hidden))});
  }
  std::optional<CrossEntropy> loss;
  if (part.is_last) {
    layers.push_back(
        {"final_norm", std::make_unique<LayerNorm>("final_norm", parameters, spec.hidden)});
    layers.push_back(
        {"head", std::make_unique<ColumnLinear>("head", parameters, tp, spec.hidden,
                                                spec.num_classes, spec.padded_classes)});
    loss.emplace("loss", tp, spec.num_classes);
  }
  return StageModel(tp, part.is_first, {.tokens_per_sample = 1, .hidden = spec.hidden},
                    std::move(layers), std::move(loss));
}

}  // namespace weft
