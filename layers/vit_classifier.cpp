#include "layers/vit_classifier.hpp"

#include <string>
#include <utility>

#include "layers/attention.hpp"
#include "layers/column_linear.hpp"
#include "layers/dropout.hpp"
#include "layers/feed_forward.hpp"
#include "layers/layer_norm.hpp"
#include "layers/mean_pool.hpp"
#include "layers/patches.hpp"
#include "layers/position_embedding.hpp"
#include "layers/residual.hpp"
#include "layers/row_linear.hpp"

namespace weft {

namespace {

using Layers = std::vector<NamedLayer>;

// Dropouts count through the whole model: 0 after the positions, then two a block.
std::unique_ptr<Layer> make_dropout(const VitSpec& spec, index_t number) {
  return std::make_unique<Dropout>(spec.dropout, number, spec.patches.tokens(), spec.hidden);
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
  layers.push_back({"dropout", make_dropout(spec, 0)});
}

void add_block(const VitSpec& spec, index_t number, ParameterSet& parameters, TensorParallel& tp,
               Layers& layers) {
  const std::string name = "block." + std::to_string(number);
  const index_t h = spec.hidden;
  std::vector<std::unique_ptr<Layer>> mixer;
  mixer.push_back(std::make_unique<LayerNorm>(name + ".norm1", parameters, h));
  auto qkv = std::make_unique<ColumnLinear>(name + ".qkv", parameters, tp, h, 3 * h, 3 * h);
  qkv->set_turns({name + ".q", name + ".k", name + ".v"}, h / spec.heads);
  mixer.push_back(std::move(qkv));
  mixer.push_back(
      std::make_unique<Attention>(tp, spec.patches.tokens(), spec.heads, h / spec.heads));
  mixer.push_back(std::make_unique<RowLinear>(name + ".proj", parameters, tp, h, h, true));
  mixer.push_back(make_dropout(spec, 1 + 2 * number));
  layers.push_back({name + ".attention", std::make_unique<Residual>(std::move(mixer))});

  layers.push_back(
      {name + ".feed_forward",
       make_feed_forward({.block = name, .norm = "norm2", .hidden = h, .width = spec.feed_forward},
                         parameters, tp, make_dropout(spec, 2 + 2 * number))});
}

CrossEntropy add_head(const VitSpec& spec, ParameterSet& parameters, TensorParallel& tp,
                      Layers& layers) {
  layers.push_back(
      {"final_norm", std::make_unique<LayerNorm>("final_norm", parameters, spec.hidden)});
  layers.push_back({"mean_pool", std::make_unique<MeanPool>("mean_pool", tp, spec.patches.tokens(),
                                                            spec.hidden)});
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
    add_block(spec, i, parameters, tp, layers);
  std::optional<CrossEntropy> loss;
  if (part.is_last) loss.emplace(add_head(spec, parameters, tp, layers));
  return StageModel(tp, part.is_first,
                    {.tokens_per_sample = spec.patches.tokens(), .hidden = spec.hidden},
                    std::move(layers), std::move(loss));
}

}  // namespace weft
