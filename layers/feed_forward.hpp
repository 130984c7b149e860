// The feed-forward branch of a block, the same in all models: x + dropout(down(gelu(up(norm(x))))),
// up column-, down row-parallel.
#pragma once

#include <memory>
#include <string>

#include "layers/layer.hpp"

namespace weft {

struct FeedForwardSpec {
  std::string block;  // "block.3": "block.3.up", "block.3.down"
  std::string norm;   // "norm2": "block.3.norm2"
  index_t hidden = 0;
  index_t width = 0;
};

// Adds its parameters to `parameters`. `tp` must outlive the layer.
std::unique_ptr<Layer> make_feed_forward(const FeedForwardSpec& spec, ParameterSet& parameters,
                                         TensorParallel& tp, std::unique_ptr<Layer> dropout);

}  // namespace weft
