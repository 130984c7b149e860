#include "layers/feed_forward.hpp"

#include <utility>
#include <vector>

#include "layers/column_linear.hpp"
#include "layers/layer_norm.hpp"
#include "layers/residual.hpp"
#include "layers/row_linear.hpp"

namespace weft {

std::unique_ptr<Layer> make_feed_forward(const FeedForwardSpec& spec, ParameterSet& parameters,
                                         TensorParallel& tp, std::unique_ptr<Layer> dropout) {
  const std::string name = spec.block + ".";
  const index_t h = spec.hidden, wide = spec.width;
  std::vector<std::unique_ptr<Layer>> chain;
  chain.push_back(std::make_unique<LayerNorm>(name + spec.norm, parameters, h));
  chain.push_back(std::make_unique<ColumnLinear>(name + "up", parameters, tp, h, wide, wide,
                                                 Epilogue::bias_gelu));
  chain.push_back(std::make_unique<RowLinear>(name + "down", parameters, tp, wide, h, true));
  chain.push_back(std::move(dropout));
  return std::make_unique<Residual>(std::move(chain));
}

}  // namespace weft
