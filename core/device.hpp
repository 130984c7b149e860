// Where kernels run: an execution space and, on a host, how many threads take part. The only file
// through which weft reaches Kokkos' parallel dispatch, so that no kernel can depend on a policy.
#pragma once

#include <Kokkos_Core.hpp>
#include <string>

#include "core/host_device.hpp"
#include "core/range.hpp"

namespace weft {

// Memory that kernels see.
using MemorySpace = Kokkos::DefaultExecutionSpace::memory_space;
inline constexpr bool device_memory_is_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;

class Device {
 public:
  // On a host: `num_threads` threads share each kernel; 1 uses Kokkos' Serial space, which many
  // threads of a process may use at once (ranks as threads). More need OpenMP and Kokkos
  // initialized with at least as many, else Error(usage). On a GPU the number is ignored.
  explicit Device(int num_threads = 1);

  int num_threads() const { return num_threads_; }
  // "OpenMP, 2 threads", "Serial", "Cuda, NVIDIA H200".
  std::string text() const;

  // f(i) for each i in [0, n): each call writes outputs of its own and reads none of another's.
  // Threads take consecutive ranges; the result does not depend on how many there are.
  template <class F>
  void parallel_for(const char* label, index_t n, const F& f) const {
    if constexpr (!device_memory_is_host) {
      // Without the index type a GPU counts in 32 bits.
      using Indices =
          Kokkos::RangePolicy<Kokkos::DefaultExecutionSpace, Kokkos::IndexType<index_t>>;
      Kokkos::parallel_for(label, Indices(0, n), f);
    } else if (num_threads_ == 1) {
      run_serial(label, n, f);
    } else {
      run_threads(label, n, f);
    }
  }

  // task(i) for each i in [0, n) on the host's threads, one task per thread at a time: for calls
  // into libraries, which run on the thread that calls them.
  template <class F>
  void host_tasks(const char* label, index_t n, const F& task) const {
    if constexpr (device_memory_is_host) {
      if (num_threads_ > 1 && n > 1) return run_threads(label, n, task);
    }
    for (index_t i = 0; i < n; ++i) task(i);
  }

  void fence() const {
    if constexpr (!device_memory_is_host) Kokkos::fence();
  }

 private:
  template <class F>
  static void run_serial(const char* label, index_t n, const F& f) {
#ifdef KOKKOS_ENABLE_SERIAL
    Kokkos::parallel_for(label, Kokkos::RangePolicy<Kokkos::Serial>(0, n), f);
#else
    for (index_t i = 0; i < n; ++i) f(i);
#endif
  }

  template <class F>
  void run_threads(const char* label, index_t n, const F& f) const {
    const index_t parts = num_threads_;
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, parts).set_chunk_size(1),
        [=](index_t part) {
          const Range mine = part_of(part, parts, n);
          for (index_t i = mine.begin; i < mine.end; ++i) f(i);
        });
  }

  int num_threads_;
};

}  // namespace weft
