#include "core/device.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace weft {

namespace {

int threads_available() {
  if constexpr (device_memory_is_host) return Kokkos::DefaultHostExecutionSpace().concurrency();
  return 1;
}

}  // namespace

Device::Device(int num_threads) : num_threads_(device_memory_is_host ? num_threads : 1) {
  require(
      num_threads_ == 1 || num_threads_ <= threads_available(), ExitCode::usage,
      fmt::format(
          "layout.threads: {} threads a rank were asked for; this Kokkos was started with {} ({})",
          num_threads_, threads_available(), Kokkos::DefaultHostExecutionSpace::name()));
}

std::string Device::text() const {
#ifdef WEFT_WITH_CUDA
  return fmt::format("Cuda, {}", Kokkos::DefaultExecutionSpace().cuda_device_prop().name);
#else
  if (num_threads_ == 1) return "Serial";
  return fmt::format("{}, {} threads", Kokkos::DefaultHostExecutionSpace::name(), num_threads_);
#endif
}

}  // namespace weft
