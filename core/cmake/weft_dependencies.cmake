# Every third-party library, found in one place. Each becomes an imported target that only the
# folders allowed to use it link (README, "Folder law").
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Kokkos REQUIRED CONFIG)
# Kernels and matrix products must see the same memory.
if(WEFT_CUDA AND NOT "CUDA" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "WEFT_CUDA needs a Kokkos with CUDA; this one has ${Kokkos_DEVICES}")
elseif("CUDA" IN_LIST Kokkos_DEVICES AND NOT WEFT_CUDA)
  message(FATAL_ERROR "this Kokkos computes with CUDA: set WEFT_CUDA (preset cuda), or Kokkos_ROOT to another")
endif()
find_package(fmt REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

# Matrix products: cuBLAS, or any CBLAS on a host. BLIS ships its cblas.h in a folder of its own.
if(WEFT_CUDA)
  find_package(CUDAToolkit REQUIRED)
else()
  set(BLA_VENDOR ${WEFT_BLAS})
  find_package(BLAS REQUIRED)
  find_path(WEFT_CBLAS_INCLUDE cblas.h REQUIRED
    PATH_SUFFIXES x86_64-linux-gnu/blis-serial blis-serial x86_64-linux-gnu/blis-openmp blis openblas x86_64-linux-gnu)
endif()

find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)

if(WEFT_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()

if(WEFT_UCX)
  find_package(ucx REQUIRED CONFIG)
endif()

if(WEFT_HDF5)
  # The serial library does; a parallel one is used as a serial one. CMake looks at it with a C program.
  enable_language(C)
  find_package(HDF5 REQUIRED COMPONENTS C)
endif()

if(WEFT_TESTS AND NOT WEFT_CUDA)
  find_package(Catch2 REQUIRED)
endif()
