# Every third-party library, found in one place. Each becomes an imported target that only the
# folders allowed to use it link (README, "Folder law").
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(Kokkos REQUIRED CONFIG)
find_package(fmt REQUIRED)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)

# Host matrix products: any CBLAS. BLIS ships its cblas.h in a folder of its own.
set(BLA_VENDOR ${WEFT_BLAS})
find_package(BLAS REQUIRED)
find_path(WEFT_CBLAS_INCLUDE cblas.h REQUIRED
  PATH_SUFFIXES x86_64-linux-gnu/blis-serial blis-serial x86_64-linux-gnu/blis-openmp blis openblas x86_64-linux-gnu)

if(WEFT_CUDA)
  find_package(CUDAToolkit REQUIRED)
else()
  find_package(nlohmann_json REQUIRED)
  find_package(tomlplusplus REQUIRED)
  find_package(CLI11 REQUIRED)
endif()

if(WEFT_MPI)
  set(MPI_CXX_SKIP_MPICXX TRUE)
  find_package(MPI REQUIRED COMPONENTS CXX)
endif()

if(WEFT_TESTS AND NOT WEFT_CUDA)
  find_package(Catch2 REQUIRED)
endif()
