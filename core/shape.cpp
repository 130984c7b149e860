#include "core/shape.hpp"

#include "core/error.hpp"

namespace weft {

index_t Shape::num_elements() const {
  index_t product = 1;
  for (int dim = 0; dim < num_dims_; ++dim) {
    require((*this)[dim] >= 0 && !__builtin_mul_overflow(product, (*this)[dim], &product),
            ExitCode::usage,
            "a tensor of shape " + text() + " has more elements than 64 bits count");
  }
  return product;
}

std::string Shape::text() const {
  std::string out = "[";
  for (int dim = 0; dim < num_dims_; ++dim) out += (dim ? ", " : "") + std::to_string((*this)[dim]);
  return out + "]";
}

}  // namespace weft
