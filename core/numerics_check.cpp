#include "core/numerics_check.hpp"

#include <fmt/format.h>
#include <gnu/libc-version.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <tuple>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "core/tensor.hpp"

namespace weft {

namespace {

// "model name" and a hash of "flags" of the first processor.
std::string cpu_text() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, model = "unknown CPU", flags;
  while (std::getline(info, line) && !line.empty()) {
    const auto colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) model = line.substr(colon + 2);
    if (line.starts_with("flags")) flags = line.substr(colon + 2);
  }
  return fmt::format("{}, flags {:08x}", model, static_cast<std::uint32_t>(hash64(flags)));
}

// The running program's file, which holds all of weft: two builds that differ in anything differ in
// it. Read once, through the page cache that it runs from.
std::string build_text() {
  static const std::string text = [] {
    std::ifstream file("/proc/self/exe", std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    require(!bytes.empty(), ExitCode::failed,
            "/proc/self/exe cannot be read, which tells builds of weft apart: is /proc mounted?");
    return fmt::format("build {:016x}, {}", hash64(bytes), WEFT_BUILD_FLAGS);
  }();
  return text;
}

constexpr float smallest_denormal = 1.40129846e-45f;

// One product with operands shifted by `shift` elements and rows longer by `gap`.
std::vector<float> run_probe(Context& context, const Gemm& gemm, const kernels::GemmCall& shape,
                             index_t shift, index_t gap) {
  using kernels::GemmCall;
  const auto make = [&](index_t rows, index_t cols, std::uint32_t which) {
    const index_t stride = cols + gap;
    Tensor tensor(context.arena, MemoryKind::workspace, {shift + rows * stride});
    const random::Key key = random::key_of(context.numerics.seed, Stream::probe);
    std::vector<float> host(static_cast<std::size_t>(shift + rows * stride), 0.0f);
    for (index_t r = 0; r < rows; ++r) {
      for (index_t c = 0; c < cols; ++c) {
        const auto words =
            random::words_at(key, which, 0, static_cast<std::uint64_t>(r * cols + c));
        host[static_cast<std::size_t>(shift + r * stride + c)] =
            2.0f * random::uniform(words.word[0]) - 1.0f;
      }
    }
    copy_to_device(tensor.raw(), host.data(), tensor.num_bytes());
    return tensor;
  };
  const Tensor a = shape.transpose_a ? make(shape.k, shape.m, 0) : make(shape.m, shape.k, 0);
  const Tensor b = shape.transpose_b ? make(shape.n, shape.k, 1) : make(shape.k, shape.n, 1);
  const Tensor c = make(shape.m, shape.n, 2);

  GemmCall call = shape;
  call.a = a.data() + shift;
  call.lda = (shape.transpose_a ? shape.m : shape.k) + gap;
  call.b = b.data() + shift;
  call.ldb = (shape.transpose_b ? shape.k : shape.n) + gap;
  call.c = c.data() + shift;
  call.ldc = shape.n + gap;
  gemm(context, call);

  std::vector<float> all(static_cast<std::size_t>(c.num_elements()));
  context.device.fence();
  copy_to_host(all.data(), c.raw(), c.num_bytes());
  std::vector<float> result;
  for (index_t r = 0; r < shape.m; ++r) {
    const auto begin = all.begin() + shift + r * call.ldc;
    result.insert(result.end(), begin, begin + shape.n);
  }
  return result;
}

}  // namespace

std::string numerics_fingerprint(const Device& device) {
  return fmt::format("{}; {}; glibc {}; {}; Kokkos {}.{}.{} {}; {}", kernels::blas_text(),
                     cpu_text(), gnu_get_libc_version(), __VERSION__, KOKKOS_VERSION / 10000,
                     KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100,
                     device_memory_is_host ? "host" : device.text(), build_text());
}

void check_denormals(Context& context) {
  const index_t num_threads = context.device.num_threads();
  const Tensor sums(context.arena, MemoryKind::workspace, {num_threads});
  const Tensor terms(context.arena, MemoryKind::workspace, {num_threads});
  std::vector<float> host(static_cast<std::size_t>(num_threads), smallest_denormal);
  copy_to_device(terms.raw(), host.data(), terms.num_bytes());
  const float* term = terms.data();
  float* sum = sums.data();
  context.device.parallel_for(
      "weft/check_denormals", num_threads,
      KOKKOS_LAMBDA(index_t i) { sum[i] = term[i] + term[i]; });
  copy_to_host(host.data(), sums.raw(), sums.num_bytes());
  for (index_t i = 0; i < num_threads; ++i) {
    // By its bits: where denormals count as zeros, a comparison of floats finds 0 equal to them.
    require(std::bit_cast<std::uint32_t>(host[static_cast<std::size_t>(i)]) == 2u, ExitCode::failed,
            fmt::format("thread {} flushes denormal numbers to zero, which exact mode does not "
                        "allow: a library built with -ffast-math was loaded (look at LD_PRELOAD)",
                        i));
  }
}

void probe_gemm(Context& context, std::span<const kernels::GemmCall> calls, const Gemm& gemm) {
  std::set<std::tuple<bool, bool, index_t, index_t, index_t, float>> seen;
  for (const auto& call : calls) {
    if (!seen.insert({call.transpose_a, call.transpose_b, call.m, call.n, call.k, call.beta})
             .second)
      continue;
    const std::vector<float> first = run_probe(context, gemm, call, 0, 0);
    const std::pair<index_t, index_t> variants[] = {{0, 0}, {64, 0}, {0, 64}};
    for (const auto& [shift, gap] : variants) {
      const std::vector<float> again = run_probe(context, gemm, call, shift, gap);
      require(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)) == 0,
              ExitCode::failed,
              fmt::format("the matrix product {}{} x {} x {}{}, beta {}, of {} does not repeat bit "
                          "for bit, which exact mode needs. Use another BLAS (BLIS does), or "
                          "numerics.mode = \"fast\"",
                          call.m, call.transpose_a ? "^T" : "", call.k, call.n,
                          call.transpose_b ? "^T" : "", call.beta, kernels::blas_text()));
    }
  }
}

}  // namespace weft
