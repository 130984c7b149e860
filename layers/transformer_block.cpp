#include "layers/transformer_block.hpp"

#include <string>
#include <utility>

#include "layers/column_linear.hpp"
#include "layers/dropout.hpp"
#include "layers/feed_forward.hpp"
#include "layers/layer_norm.hpp"
#include "layers/residual.hpp"
#include "layers/row_linear.hpp"

namespace weft {

std::unique_ptr<Layer> make_dropout(const TransformerSpec& spec, index_t number) {
  return std::make_unique<Dropout>(spec.dropout, number, spec.tokens, spec.hidden);
}

void add_transformer_block(const TransformerSpec& spec, index_t number, ParameterSet& parameters,
                           TensorParallel& tp, std::vector<NamedLayer>& layers) {
  const std::string name = "block." + std::to_string(number);
  const index_t h = spec.hidden, head_dim = h / spec.heads;
  std::vector<std::unique_ptr<Layer>> mixer;
  mixer.push_back(std::make_unique<LayerNorm>(name + ".norm1", parameters, h));
  auto qkv = std::make_unique<ColumnLinear>(name + ".qkv", parameters, tp, h, 3 * h, 3 * h);
  qkv->set_turns({name + ".q", name + ".k", name + ".v"}, head_dim);
  mixer.push_back(std::move(qkv));
  mixer.push_back(std::make_unique<Attention>(tp, spec.heads, head_dim, spec.sees));
  mixer.push_back(std::make_unique<RowLinear>(name + ".proj", parameters, tp, h, h, true));
  mixer.push_back(make_dropout(spec, 1 + 2 * number));
  layers.push_back({name + ".attention", std::make_unique<Residual>(std::move(mixer))});

  layers.push_back(
      {name + ".feed_forward",
       make_feed_forward({.block = name, .norm = "norm2", .hidden = h, .width = spec.feed_forward},
                         parameters, tp, make_dropout(spec, 2 + 2 * number))});
}

}  // namespace weft
