#include "apps/version_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/kernels/gemm.hpp"
#include "core/numerics_check.hpp"
#include "io/checkpoint/hdf5_file.hpp"
#include "parallel/comm/transport_registry.hpp"

namespace weft {
namespace {

std::string checkpoint_library() {
  return hdf5::is_built_in() ? "HDF5 " + hdf5::library_version() : "none: built without HDF5";
}

}  // namespace

std::string version_number() { return WEFT_VERSION; }

std::string version_text() {
  return fmt::format(
      "weft {}\n"
      "kernels     Kokkos {}.{}.{}, {}\n"
      "matmul      {}\n"
      "transports  {}\n"
      "checkpoints {}\n"
      "build       g++ {}, {}\n"
      "not built   NCCL (later versions)",
      WEFT_VERSION, KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100,
      Kokkos::DefaultExecutionSpace::name(), kernels::blas_text(),
      fmt::join(built_in_transports(), ", "), checkpoint_library(), __VERSION__,
      WEFT_BUILD_TYPE " -march=" WEFT_ARCH);
}

}  // namespace weft
