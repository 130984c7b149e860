// The mark for functions that kernels call. Its own file, so that host-only code (the loader's
// thread, the plan) can use the same functions without including Kokkos.
#pragma once

#if defined(__CUDACC__) || defined(__HIPCC__)
#define WEFT_HOST_DEVICE __host__ __device__
#else
#define WEFT_HOST_DEVICE
#endif
