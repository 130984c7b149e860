#include "core/kernels/gemm.hpp"

#ifdef WEFT_WITH_CUDA
#include <cublas_v2.h>
#include <cuda_runtime.h>
#else
#include <cblas.h>
#endif

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/kernels/reduce.hpp"

#ifndef WEFT_WITH_CUDA
// Present in BLIS and in OpenBLAS respectively; what is missing stays null.
extern "C" {
__attribute__((weak)) const char* bli_info_get_version_str(void);
__attribute__((weak)) int bli_arch_query_id(void);
__attribute__((weak)) const char* bli_arch_string(int id);
__attribute__((weak)) const char* openblas_get_config(void);
}
#endif

namespace weft::kernels {

#ifdef WEFT_WITH_CUDA

namespace {

// cuBLAS is column-major: row-major c = a b is column-major c^T = b^T a^T. One handle on the stream
// that kernels use, no atomics and no TF32 keep repeated calls equal; the start-up probe checks
// that they are.
cublasHandle_t handle() {
  static thread_local cublasHandle_t cublas = [] {
    cublasHandle_t created = nullptr;
    require(cublasCreate(&created) == CUBLAS_STATUS_SUCCESS, ExitCode::failed,
            "cuBLAS does not start");
    cublasSetStream(created, Kokkos::DefaultExecutionSpace().cuda_stream());
    cublasSetAtomicsMode(created, CUBLAS_ATOMICS_NOT_ALLOWED);
    cublasSetMathMode(created, CUBLAS_PEDANTIC_MATH);
    return created;
  }();
  return cublas;
}

// What a sum over no products leaves; a library may refuse leading dims of 0.
void empty_product(const GemmCall& call) {
  if (call.beta != 0.0f) return;
  constexpr std::size_t size = sizeof(float);
  const auto status = cudaMemset2DAsync(
      call.c, static_cast<std::size_t>(call.ldc) * size, 0, static_cast<std::size_t>(call.n) * size,
      static_cast<std::size_t>(call.m), Kokkos::DefaultExecutionSpace().cuda_stream());
  require(status == cudaSuccess, ExitCode::failed,
          fmt::format("cudaMemset2DAsync of {} x {} failed with status {}", call.m, call.n,
                      static_cast<int>(status)));
}

}  // namespace

void gemm(Context&, const GemmCall& call) {
  if (call.m == 0 || call.n == 0) return;
  if (call.k == 0) return empty_product(call);
  const float one = 1.0f;
  const auto status = cublasSgemm(
      handle(), call.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
      call.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, static_cast<int>(call.n),
      static_cast<int>(call.m), static_cast<int>(call.k), &one, call.b, static_cast<int>(call.ldb),
      call.a, static_cast<int>(call.lda), &call.beta, call.c, static_cast<int>(call.ldc));
  require(status == CUBLAS_STATUS_SUCCESS, ExitCode::failed,
          fmt::format("cublasSgemm of {} x {} x {} failed with status {}", call.m, call.n, call.k,
                      static_cast<int>(status)));
}

std::string blas_text() {
  // Without a handle: `weft --version` may run where there is no GPU.
  int major = 0, minor = 0, patch = 0;
  cublasGetProperty(MAJOR_VERSION, &major);
  cublasGetProperty(MINOR_VERSION, &minor);
  cublasGetProperty(PATCH_LEVEL, &patch);
  return fmt::format("cuBLAS {}.{}.{}", major, minor, patch);
}

#else

namespace {

// What a sum over no products leaves; a library may refuse leading dims of 0.
void empty_product(const GemmCall& call) {
  if (call.beta != 0.0f) return;
  for (index_t row = 0; row < call.m; ++row) std::fill_n(call.c + row * call.ldc, call.n, 0.0f);
}

// A matrix times a vector, where a product has one column or one row. Libraries have ways of their
// own for it, whose order of sums may follow strides and alignment (BLIS on zen3), so it is done
// here.
struct VectorProduct {
  const float* matrix;
  index_t stride;  // from row to row
  bool sums_rows;  // its rows are the sums, over k numbers side by side; else its columns are
  const float* vector;
  index_t vector_stride;
  float* sums;
  index_t sums_stride;
};

// sums[i] = beta sums[i] + sum, for i in [0, num).
void multiply(const VectorProduct& product, index_t num, index_t k, float beta) {
  const auto& [matrix, stride, sums_rows, vector, vector_stride, sums, sums_stride] = product;
  const auto put = [&, sums = sums, sums_stride = sums_stride](index_t i, float sum) {
    float& to = sums[i * sums_stride];
    to = beta == 0.0f ? sum : to + sum;
  };
  if (sums_rows) {
    for (index_t i = 0; i < num; ++i) {
      const float* row = matrix + i * stride;
      put(i, sum_of<float>(k, [&, vector = vector, vector_stride = vector_stride](index_t p) {
            return row[p] * vector[p * vector_stride];
          }));
    }
    return;
  }
  for (index_t first = 0; first < num; first += column_group) {
    const index_t width = std::min(column_group, num - first);
    float group[column_group];
    for (index_t j = 0; j < width; ++j) group[j] = matrix[first + j] * vector[0];
    for (index_t p = 1; p < k; ++p) {
      const float factor = vector[p * vector_stride];
      const float* row = matrix + p * stride + first;
      for (index_t j = 0; j < width; ++j) group[j] += row[j] * factor;
    }
    for (index_t j = 0; j < width; ++j) put(first + j, group[j]);
  }
}

}  // namespace

void gemm(Context&, const GemmCall& call) {
  if (call.m == 0 || call.n == 0) return;
  if (call.k == 0) return empty_product(call);
  if (call.n == 1) {
    return multiply({call.a, call.lda, !call.transpose_a, call.b, call.transpose_b ? 1 : call.ldb,
                     call.c, call.ldc},
                    call.m, call.k, call.beta);
  }
  if (call.m == 1) {
    return multiply(
        {call.b, call.ldb, call.transpose_b, call.a, call.transpose_a ? call.lda : 1, call.c, 1},
        call.n, call.k, call.beta);
  }
  const auto integer = [](index_t value) { return static_cast<int>(value); };
  cblas_sgemm(CblasRowMajor, call.transpose_a ? CblasTrans : CblasNoTrans,
              call.transpose_b ? CblasTrans : CblasNoTrans, integer(call.m), integer(call.n),
              integer(call.k), 1.0f, call.a, integer(call.lda), call.b, integer(call.ldb),
              call.beta, call.c, integer(call.ldc));
}

std::string blas_text() {
  if (bli_info_get_version_str) {
    const char* kernel =
        bli_arch_query_id && bli_arch_string ? bli_arch_string(bli_arch_query_id()) : "?";
    return fmt::format("BLIS {} ({})", bli_info_get_version_str(), kernel);
  }
  if (openblas_get_config) return openblas_get_config();
  return "CBLAS";
}

#endif

void gemm_batch(Context& context, std::span<const GemmCall> calls) {
  context.device.host_tasks("weft/gemm_batch", static_cast<index_t>(calls.size()),
                            [&](index_t i) { gemm(context, calls[static_cast<std::size_t>(i)]); });
}

}  // namespace weft::kernels
