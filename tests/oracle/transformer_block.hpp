// The pre-norm blocks of a transformer, with their residuals and dropouts, by the names of their
// parameters: what all models of tokens here are made of.
//
//   h = h + dropout(proj(attention(qkv(norm1(h)))))
//   h = h + dropout(down(gelu(up(norm2(h)))))
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/oracle/attention.hpp"
#include "tests/oracle/dropout.hpp"
#include "tests/oracle/named_layers.hpp"

namespace weft::oracle {

struct BlocksShape {
  std::size_t layers = 0;
  std::size_t tokens = 0;
  std::size_t hidden = 0;
  std::size_t heads = 0;
  std::size_t mlp_ratio = 4;
  double dropout = 0.0;
  double norm_eps = 1e-5;

  // One before the blocks, two a block.
  std::size_t num_dropouts() const { return 1 + 2 * layers; }
};

// block.<i>.{norm1,norm2}.{gain,bias}, block.<i>.{qkv,proj,up,down}.{weight,bias}, all zero.
inline void add_blocks(NamedMatrices& zeros, const BlocksShape& shape) {
  const std::size_t h = shape.hidden;
  for (std::size_t i = 0; i < shape.layers; ++i) {
    const std::string block = block_name(i);
    add_norm(zeros, block + "norm1", h);
    add_linear(zeros, block + "qkv", 3 * h, h);
    add_linear(zeros, block + "proj", h, h);
    add_norm(zeros, block + "norm2", h);
    add_linear(zeros, block + "up", shape.mlp_ratio * h, h);
    add_linear(zeros, block + "down", h, shape.mlp_ratio * h);
  }
}

// Dropout number `which` of a model; no masks at all: none.
inline Matrix numbered_dropout(const Matrix& y, const std::vector<Matrix>& masks, std::size_t which,
                               double rate) {
  return masks.empty() ? y : dropout(y, masks.at(which), rate);
}

// proj(attention(qkv(norm1(x)))).
struct AttentionBranch {
  std::string block;  // "block.3."
  BlocksShape shape;
  AttentionMask mask;

  // What backward needs of forward.
  Matrix x = {}, normalized = {}, qkv = {}, mixed = {};

  Matrix forward(const NamedMatrices& p, const Matrix& input) {
    x = input;
    normalized = named_norm(p, block + "norm1", x, shape.norm_eps);
    qkv = named_linear(p, block + "qkv", normalized);
    mixed = attention_forward(qkv, shape.tokens, shape.heads, mask);
    return named_linear(p, block + "proj", mixed);
  }

  Matrix backward(const NamedMatrices& p, const Matrix& dproj, NamedMatrices& gradients) const {
    const Matrix dmixed = named_linear_backward(p, block + "proj", mixed, dproj, gradients);
    const Matrix dqkv = attention_backward(qkv, dmixed, shape.tokens, shape.heads, mask);
    const Matrix dnormalized = named_linear_backward(p, block + "qkv", normalized, dqkv, gradients);
    return named_norm_backward(p, block + "norm1", x, dnormalized, shape.norm_eps, gradients);
  }
};

// All blocks of a model, one after the other.
class Blocks {
 public:
  Blocks(const BlocksShape& shape, const AttentionMask& mask) : shape_(shape) {
    for (std::size_t i = 0; i < shape.layers; ++i) {
      const std::string block = block_name(i);
      attentions_.push_back({block, shape, mask});
      feeds_.push_back({block, block + "norm2", shape.norm_eps, {}, {}, {}, {}});
    }
  }

  // `masks`: the model's, of which block i has numbers 1 + 2i and 2 + 2i; or none.
  Matrix forward(const NamedMatrices& p, Matrix h, const std::vector<Matrix>& masks) {
    masks_ = masks;
    for (std::size_t i = 0; i < shape_.layers; ++i) {
      h = residual(h, drop(attentions_[i].forward(p, h), 1 + 2 * i));
      h = residual(h, drop(feeds_[i].forward(p, h), 2 + 2 * i));
    }
    return h;
  }

  // `dh`: the gradient of the residual stream.
  Matrix backward(const NamedMatrices& p, Matrix dh, NamedMatrices& gradients) const {
    for (std::size_t i = shape_.layers; i-- > 0;) {
      dh = residual(dh, feeds_[i].backward(p, drop(dh, 2 + 2 * i), gradients));
      dh = residual(dh, attentions_[i].backward(p, drop(dh, 1 + 2 * i), gradients));
    }
    return dh;
  }

 private:
  Matrix drop(const Matrix& y, std::size_t which) const {
    return numbered_dropout(y, masks_, which, shape_.dropout);
  }

  BlocksShape shape_;
  std::vector<AttentionBranch> attentions_;
  std::vector<FeedForward> feeds_;
  std::vector<Matrix> masks_;
};

}  // namespace weft::oracle
