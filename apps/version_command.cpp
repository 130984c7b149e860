#include "apps/version_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/kernels/gemm.hpp"
#include "core/numerics_check.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace weft {

std::string version_text() {
  return fmt::format(
      "weft {}\n"
      "kernels     Kokkos {}.{}.{}, {}\n"
      "matmul      {}\n"
      "transports  {}\n"
      "build       g++ {}, {}\n"
      "not built   NCCL, HDF5 (later versions)",
      WEFT_VERSION, KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100,
      Kokkos::DefaultExecutionSpace::name(), kernels::blas_text(),
      fmt::join(built_in_transports(), ", "), __VERSION__, WEFT_BUILD_TYPE " -march=" WEFT_ARCH);
}

}  // namespace weft
