// Element types of tensors, and the one mapping between C++ types and their run-time names.
#pragma once

#include <cstdint>

namespace weft {

enum class DType : std::uint8_t { f32, f64, i32, i64 };

constexpr std::int64_t bytes_of(DType dtype) {
  return dtype == DType::f32 || dtype == DType::i32 ? 4 : 8;
}

template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};

}  // namespace weft
