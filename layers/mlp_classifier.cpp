#include "layers/mlp_classifier.hpp"

#include <string>

#include "layers/column_linear.hpp"
#include "layers/dropout.hpp"
#include "layers/layer_norm.hpp"
#include "layers/residual.hpp"
#include "layers/row_linear.hpp"
#include "layers/split_features.hpp"

namespace weft {

namespace {

std::unique_ptr<Layer> make_block(const MlpSpec& spec, index_t number, ParameterSet& parameters,
                                  TensorParallel& tp) {
  const std::string name = "block." + std::to_string(number);
  std::vector<std::unique_ptr<Layer>> chain;
  chain.push_back(std::make_unique<LayerNorm>(name + ".norm", parameters, spec.hidden));
  chain.push_back(std::make_unique<ColumnLinear>(name + ".up", parameters, tp, spec.hidden,
                                                 spec.feed_forward, spec.feed_forward,
                                                 Epilogue::gelu));
  chain.push_back(std::make_unique<RowLinear>(name + ".down", parameters, tp, spec.feed_forward,
                                              spec.hidden, true));
  chain.push_back(std::make_unique<Dropout>(spec.dropout, number, 1, spec.hidden));
  return std::make_unique<Residual>(std::move(chain));
}

}  // namespace

StageModel make_mlp_classifier(const MlpSpec& spec, const StagePart& part, ParameterSet& parameters,
                               TensorParallel& tp) {
  std::vector<std::unique_ptr<Layer>> layers;
  if (part.is_first) {
    layers.push_back(std::make_unique<SplitFeatures>(tp));
    layers.push_back(std::make_unique<RowLinear>("stem", parameters, tp, spec.input_features,
                                                 spec.hidden, false));
  }
  for (index_t i = part.blocks.begin; i < part.blocks.end; ++i)
    layers.push_back(make_block(spec, i, parameters, tp));
  std::optional<CrossEntropy> loss;
  if (part.is_last) {
    layers.push_back(std::make_unique<LayerNorm>("final_norm", parameters, spec.hidden));
    layers.push_back(std::make_unique<ColumnLinear>("head", parameters, tp, spec.hidden,
                                                    spec.num_classes, spec.padded_classes));
    loss.emplace("loss", tp, spec.num_classes);
  }
  return StageModel(tp, part.is_first, {.tokens_per_sample = 1, .hidden = spec.hidden},
                    std::move(layers), std::move(loss));
}

}  // namespace weft
