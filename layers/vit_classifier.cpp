#include "layers/vit_classifier.hpp"

#include <utility>

#include "layers/column_linear.hpp"
#include "layers/layer_norm.hpp"
#include "layers/mean_pool.hpp"
#include "layers/patches.hpp"
#include "layers/position_embedding.hpp"
#include "layers/row_linear.hpp"
#include "layers/transformer_block.hpp"

namespace weft {

namespace {

using Layers = std::vector<NamedLayer>;

TransformerSpec blocks_of(const VitSpec& spec) {
  return {.tokens = spec.patches.tokens(),
          .hidden = spec.hidden,
          .heads = spec.heads,
          .feed_forward = spec.feed_forward,
          .dropout = spec.dropout};
}

void add_embedding(const VitSpec& spec, ParameterSet& parameters, TensorParallel& tp,
                   Layers& layers) {
  layers.push_back({"input", std::make_unique<Patches>(tp, spec.patches)});
  layers.push_back(
      {"patch", std::make_unique<RowLinear>("patch", parameters, tp, spec.patches.features(),
                                            spec.hidden, false)});
  layers.push_back(
      {"position", std::make_unique<PositionEmbedding>("position", parameters, tp,
                                                       spec.patches.tokens(), spec.hidden)});
  layers.push_back({"dropout", make_dropout(blocks_of(spec), 0)});
}

CrossEntropy add_head(const VitSpec& spec, ParameterSet& parameters, TensorParallel& tp,
                      Layers& layers) {
  layers.push_back(
      {"final_norm", std::make_unique<LayerNorm>("final_norm", parameters, spec.hidden)});
  layers.push_back({"mean_pool", std::make_unique<MeanPool>("mean_pool", tp, spec.hidden)});
  layers.push_back({"head", std::make_unique<ColumnLinear>("head", parameters, tp, spec.hidden,
                                                           spec.num_classes, spec.padded_classes)});
  return {"loss", tp, spec.num_classes};
}

}  // namespace

StageModel make_vit_classifier(const VitSpec& spec, const StagePart& part, ParameterSet& parameters,
                               TensorParallel& tp) {
  Layers layers;
  if (part.is_first) add_embedding(spec, parameters, tp, layers);
  for (index_t i = part.blocks.begin; i < part.blocks.end; ++i)
    add_transformer_block(blocks_of(spec), i, parameters, tp, layers);
  std::optional<CrossEntropy> loss;
  if (part.is_last) loss.emplace(add_head(spec, parameters, tp, layers));
  return StageModel(tp, part.is_first,
                    {.tokens_per_sample = spec.patches.tokens(), .hidden = spec.hidden},
                    std::move(layers), std::move(loss));
}

}  // namespace weft
