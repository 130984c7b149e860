// Layers that find their parameters by name and leave their gradients under the same name: what a
// model is written with. Also the pre-norm feed-forward branch, which all models here have.
#pragma once

#include <string>
#include <utility>

#include "tests/oracle/gelu.hpp"
#include "tests/oracle/layer_norm.hpp"
#include "tests/oracle/linear.hpp"
#include "tests/oracle/matrix.hpp"

namespace weft::oracle {

inline std::string block_name(std::size_t block) { return "block." + std::to_string(block) + "."; }

inline Matrix zero_vector(std::size_t length) {
  return Matrix::vector(std::vector<double>(length, 0.0));
}

// name.weight [outputs, inputs] and name.bias [outputs].
inline void add_linear(NamedMatrices& zeros, const std::string& name, std::size_t outputs,
                       std::size_t inputs) {
  zeros[name + ".weight"] = Matrix(outputs, inputs);
  zeros[name + ".bias"] = zero_vector(outputs);
}

// name.gain and name.bias [features].
inline void add_norm(NamedMatrices& zeros, const std::string& name, std::size_t features) {
  zeros[name + ".gain"] = zero_vector(features);
  zeros[name + ".bias"] = zero_vector(features);
}

inline Matrix named_linear(const NamedMatrices& p, const std::string& name, const Matrix& x) {
  return linear_forward(x, p.at(name + ".weight"), p.at(name + ".bias"));
}

// dx; dw and db go into `gradients`.
inline Matrix named_linear_backward(const NamedMatrices& p, const std::string& name,
                                    const Matrix& x, const Matrix& dy, NamedMatrices& gradients) {
  LinearGradients g = linear_backward(x, p.at(name + ".weight"), dy);
  gradients[name + ".weight"] = std::move(g.dw);
  gradients[name + ".bias"] = std::move(g.db);
  return std::move(g.dx);
}

inline Matrix named_norm(const NamedMatrices& p, const std::string& name, const Matrix& x,
                         double eps) {
  return layer_norm_forward(x, p.at(name + ".gain"), p.at(name + ".bias"), eps);
}

// dx; dgain and dbias go into `gradients`.
inline Matrix named_norm_backward(const NamedMatrices& p, const std::string& name, const Matrix& x,
                                  const Matrix& dy, double eps, NamedMatrices& gradients) {
  LayerNormGradients g = layer_norm_backward(x, p.at(name + ".gain"), dy, eps);
  gradients[name + ".gain"] = std::move(g.dgain);
  gradients[name + ".bias"] = std::move(g.dbias);
  return std::move(g.dx);
}

// down(gelu(up(norm(x)))): its parameters are block.{up,down} and the norm `norm`.
struct FeedForward {
  std::string block;  // "block.3."
  std::string norm;   // "block.3.norm"
  double norm_eps;

  // What backward needs of forward.
  Matrix x, normalized, up, activated;

  Matrix forward(const NamedMatrices& p, const Matrix& input) {
    x = input;
    normalized = named_norm(p, norm, x, norm_eps);
    up = named_linear(p, block + "up", normalized);
    activated = gelu_forward(up);
    return named_linear(p, block + "down", activated);
  }

  Matrix backward(const NamedMatrices& p, const Matrix& ddown, NamedMatrices& gradients) const {
    const Matrix dactivated = named_linear_backward(p, block + "down", activated, ddown, gradients);
    const Matrix dup = gelu_backward(up, dactivated);
    const Matrix dnormalized = named_linear_backward(p, block + "up", normalized, dup, gradients);
    return named_norm_backward(p, norm, x, dnormalized, norm_eps, gradients);
  }
};

}  // namespace weft::oracle
