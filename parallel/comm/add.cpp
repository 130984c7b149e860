#include "parallel/comm/add.hpp"

namespace weft {

namespace {

// Without __restrict the compiler guards each loop by overlap checks or does not vectorise it.
template <class T>
void add_apart(index_t count, const T* __restrict left, const T* __restrict right,
               T* __restrict sum) {
  for (index_t i = 0; i < count; ++i) sum[i] = left[i] + right[i];
}

template <class T>
void add_onto(index_t count, T* __restrict sum, const T* __restrict right) {
  for (index_t i = 0; i < count; ++i) sum[i] = sum[i] + right[i];
}

template <class T>
void add(index_t count, const void* left, const void* right, void* sum) {
  T* const out = static_cast<T*>(sum);
  if (sum == left) {
    add_onto(count, out, static_cast<const T*>(right));
  } else if (sum == right) {
    add_onto(count, out, static_cast<const T*>(left));
  } else {
    add_apart(count, static_cast<const T*>(left), static_cast<const T*>(right), out);
  }
}

}  // namespace

void add_values(Precision precision, index_t count, const void* left, const void* right,
                void* sum) {
  if (precision == Precision::f32) {
    add<float>(count, left, right, sum);
  } else {
    add<double>(count, left, right, sum);
  }
}

}  // namespace weft
