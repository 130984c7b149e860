// Extents of a dense row-major tensor of up to four dims.
#pragma once

#include <array>
#include <cassert>
#include <initializer_list>
#include <string>

#include "core/range.hpp"

namespace weft {

class Shape {
 public:
  static constexpr int max_dims = 4;

  Shape() = default;
  Shape(std::initializer_list<index_t> extents) {
    assert(extents.size() <= max_dims);
    for (const index_t extent : extents) extents_[static_cast<std::size_t>(num_dims_++)] = extent;
  }

  int num_dims() const { return num_dims_; }
  index_t operator[](int dim) const { return extents_[static_cast<std::size_t>(dim)]; }
  index_t& operator[](int dim) { return extents_[static_cast<std::size_t>(dim)]; }
  // Throws Error(usage) where the product does not fit 64 bits.
  index_t num_elements() const;
  std::string text() const;  // "[128, 768]"

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<index_t, max_dims> extents_{};
  int num_dims_ = 0;
};

}  // namespace weft
