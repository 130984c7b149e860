// The samples of one step that one rank works on, in plain host memory (the loader's thread must
// not allocate through Kokkos). It holds numbers; it does not know how they were chosen.
#pragma once

#include <chrono>
#include <cstdint>
#include <new>
#include <vector>

#include "core/range.hpp"

namespace weft {

// 64-byte aligned: a cache line, and the widest vector registers.
template <typename T>
struct HostAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};

  HostAllocator() = default;
  template <typename U>
  HostAllocator(const HostAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), alignment)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, alignment); }
  template <typename U>
  friend bool operator==(const HostAllocator&, const HostAllocator<U>&) {
    return true;
  }
};

template <typename T>
using HostVector = std::vector<T, HostAllocator<T>>;

// Rows in the order lane, microbatch, row in the microbatch.
struct HostBatch {
  index_t step = 0;
  index_t epoch = 0;
  index_t tokens_per_sample = 0;  // 0: samples have none
  // As the data set's form says, empty where a sample has none or nobody asks for them: the first
  // two are for a pipeline's first stage.
  HostVector<float> features;              // [rows, features]
  HostVector<std::int32_t> tokens;         // [rows, tokens_per_sample]
  HostVector<std::int32_t> lengths;        // [rows]: real tokens
  HostVector<std::int32_t> labels;         // [rows, labels of a sample]
  HostVector<float> weight;                // the same; 0 padding, else 1 or the class's weight
  HostVector<std::int64_t> dataset_index;  // [rows]
  index_t num_real_global = 0;             // real samples of the whole global batch
  // When the loader's thread read it.
  std::chrono::steady_clock::time_point read_begin, read_end;

  index_t num_rows() const { return static_cast<index_t>(dataset_index.size()); }
  // Labels of real samples in the whole global batch: what a mean loss is a mean over.
  index_t num_targets_global() const {
    return num_real_global * (static_cast<index_t>(labels.size()) / num_rows());
  }
};

}  // namespace weft
