// The matmul entry against plain double loops, and what must hold before exact mode starts.
#include <catch2/catch.hpp>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/kernels/gemm.hpp"
#include "core/numerics_check.hpp"
#include "tests/core/float_data.hpp"

using namespace weft;
using namespace weft::testing;
using kernels::GemmCall;

namespace {

// A product with its operands in rows longer than they need be. What lies between rows is NaN: the
// result must not see it, and must not touch its own.
struct Product {
  GemmCall call;
  Floats a, b, c;

  Product(index_t m, index_t n, index_t k, bool transpose_a, bool transpose_b, float beta,
          index_t gap, std::uint64_t seed) {
    const auto make = [&](index_t rows, index_t cols, std::uint64_t which) {
      Floats values = random_floats(static_cast<std::size_t>(rows * (cols + gap)), seed + which);
      for (index_t i = 0; i < rows * (cols + gap); ++i) {
        if (i % (cols + gap) >= cols) values[static_cast<std::size_t>(i)] = NAN;
      }
      return values;
    };
    call = {.transpose_a = transpose_a, .transpose_b = transpose_b, .m = m, .n = n, .k = k};
    call.lda = (transpose_a ? m : k) + gap;
    call.ldb = (transpose_b ? k : n) + gap;
    call.ldc = n + gap;
    call.beta = beta;
    a = transpose_a ? make(k, m, 0) : make(m, k, 0);
    b = transpose_b ? make(n, k, 1) : make(k, n, 1);
    // Where c is not to be read, it is NaN.
    c = beta == 0.0f ? Floats(static_cast<std::size_t>(m * (n + gap)), NAN) : make(m, n, 2);
    point();
  }
  void point() {
    call.a = a.data();
    call.b = b.data();
    call.c = c.data();
  }
};

float at(const Floats& values, index_t i) { return values[static_cast<std::size_t>(i)]; }

// "" or the first element that is not within the bound: each of k + 1 products and sums rounds
// once, relative to the sum of magnitudes, whatever their order.
std::string fault_of(const Product& before, const Product& after) {
  const GemmCall& call = before.call;
  for (index_t i = 0; i < call.m; ++i) {
    for (index_t j = 0; j < call.ldc; ++j) {
      const float got = at(after.c, i * call.ldc + j);
      if (j >= call.n) {
        if (!std::isnan(got)) return "wrote between rows";
        continue;
      }
      double sum = 0.0, magnitude = 0.0;
      if (call.beta != 0.0f) {
        sum = static_cast<double>(at(before.c, i * call.ldc + j));
        magnitude = std::abs(sum);
      }
      for (index_t p = 0; p < call.k; ++p) {
        const double x = static_cast<double>(
            at(before.a, call.transpose_a ? p * call.lda + i : i * call.lda + p));
        const double y = static_cast<double>(
            at(before.b, call.transpose_b ? j * call.ldb + p : p * call.ldb + j));
        sum += x * y;
        magnitude += std::abs(x * y);
      }
      const double bound = static_cast<double>(call.k + 2) * 0x1p-24 * magnitude;
      if (!(std::abs(static_cast<double>(got) - sum) <= bound)) {
        return "c[" + std::to_string(i) + ", " + std::to_string(j) + "] = " + std::to_string(got) +
               ", not " + std::to_string(sum);
      }
    }
  }
  return "";
}

#ifdef __SSE__
// Sets flush-to-zero and denormals-are-zero on this thread, as -ffast-math's start-up code does.
class FlushDenormals {
 public:
  explicit FlushDenormals(unsigned bits) : before_(_mm_getcsr()) { _mm_setcsr(before_ | bits); }
  ~FlushDenormals() { _mm_setcsr(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned before_;
};
#endif

}  // namespace

TEST_CASE("gemm agrees with plain loops: transposes, beta, leading dims, odd sizes", "[gemm]") {
  Context context(1, {});
  const index_t sizes[][3] = {{1, 1, 1},    {1, 7, 3},    {5, 1, 9},    {3, 3, 1},
                              {16, 16, 16}, {17, 13, 33}, {64, 10, 48}, {13, 65, 31},
                              {1, 200, 70}, {200, 1, 70}, {1, 64, 1},   {130, 1, 16}};
  for (const auto& [m, n, k] : sizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        for (const float beta : {0.0f, 1.0f}) {
          for (const index_t gap : {0, 1, 5}) {
            const Product before(m, n, k, transpose_a, transpose_b, beta, gap, 17);
            Product after = before;
            after.point();
            kernels::gemm(context, after.call);
            INFO(m << " x " << n << " x " << k << (transpose_a ? " a^T" : "")
                   << (transpose_b ? " b^T" : "") << ", beta " << beta << ", gap " << gap);
            REQUIRE(fault_of(before, after) == "");
          }
        }
      }
    }
  }
  kernels::gemm(context, {.m = 0, .n = 3, .k = 2});  // no rows: nothing to do
}

TEST_CASE("a sum over no products is 0, or what was there", "[gemm]") {
  Context context(1, {});
  for (const bool transpose : {false, true}) {
    for (const float beta : {0.0f, 1.0f}) {
      for (const index_t gap : {0, 3}) {
        const Product before(5, 7, 0, transpose, transpose, beta, gap, 17);
        Product after = before;
        after.point();
        if (gap == 0 && !transpose) after.call.lda = 0;  // rows of no elements
        kernels::gemm(context, after.call);
        INFO("beta " << beta << ", gap " << gap);
        REQUIRE(fault_of(before, after) == "");
      }
    }
  }
}

// Classes in pieces of one: BLIS on zen3 failed for 64 x 32 x 1 and others.
TEST_CASE("products with a vector pass the start-up probe in all sizes", "[gemm]") {
  Context context(1, {});
  std::vector<GemmCall> calls;
  for (const index_t size : {2, 16, 64, 100}) {
    for (const index_t k : {1, 15, 32, 48, 64, 96, 192, 1000}) {
      for (const bool transpose_a : {false, true}) {
        for (const bool transpose_b : {false, true}) {
          calls.push_back({transpose_a, transpose_b, size, 1, k});
          calls.push_back({transpose_a, transpose_b, 1, size, k});
        }
      }
    }
  }
  probe_gemm(context, calls);
}

TEST_CASE("a batch of products gives the same bits on any number of threads", "[gemm]") {
  const auto run = [](int threads) {
    Context context(threads, {});
    std::vector<Product> products;
    for (index_t i = 0; i < 7; ++i) {
      products.emplace_back(19 + i, 24, 31, i % 2 == 0, i % 3 == 0, 0.0f, 0, 100 + i);
    }
    std::vector<GemmCall> calls;
    for (Product& product : products) {
      product.point();
      calls.push_back(product.call);
    }
    kernels::gemm_batch(context, calls);
    Floats all;
    for (const Product& product : products) {
      all.insert(all.end(), product.c.begin(), product.c.end());
    }
    return all;
  };
  const Floats expected = run(1);
  for (const int threads : {1, 2, 3, 4}) {
    for (int repeat = 0; repeat < 5; ++repeat)
      REQUIRE(bit_difference(run(threads), expected) == "");
  }
}

TEST_CASE("the start-up probe passes for shapes of a plan", "[numerics_check]") {
  Context context(1, {});
  const std::vector<GemmCall> calls{
      {.transpose_b = true, .m = 16, .n = 48, .k = 256},
      {.m = 16, .n = 48, .k = 12},
      {.transpose_a = true, .m = 3, .n = 48, .k = 16},
      {.transpose_a = true, .m = 3, .n = 48, .k = 16},  // once is enough
      {.transpose_a = true, .m = 3, .n = 48, .k = 16, .beta = 1.0f},
      {.m = 1, .n = 1, .k = 1}};
  CHECK_NOTHROW(probe_gemm(context, calls));
  CHECK(context.arena.in_use() == 0);
}

namespace {

// What the probe says of a gemm whose results `spoil` may change: "" where it passes.
std::string verdict(const std::vector<GemmCall>& calls,
                    const std::function<bool(const GemmCall&, int number)>& spoil) {
  Context context(1, {});
  int number = 0;
  try {
    probe_gemm(context, calls, [&](Context& with, const GemmCall& call) {
      kernels::gemm(with, call);
      float& last = call.c[(call.m - 1) * call.ldc + call.n - 1];
      if (spoil(call, number++)) last = std::nextafter(last, 2.0f * last);
    });
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::failed);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the start-up probe finds products that depend on where operands lie, by one bit",
          "[numerics_check]") {
  const std::vector<GemmCall> calls{{.transpose_b = true, .m = 8, .n = 12, .k = 20},
                                    {.transpose_a = true, .m = 3, .n = 5, .k = 7},
                                    {.transpose_a = true, .m = 3, .n = 5, .k = 7, .beta = 1.0f}};
  CHECK(verdict(calls, [](const GemmCall&, int) { return false; }).empty());
  // By row lengths.
  CHECK(verdict(calls, [](const GemmCall& call, int) { return call.ldc != call.n; }) != "");
  // By place: operands begin at their blocks' begin in the first run, behind it in another.
  const auto page = [](const GemmCall& call) { return reinterpret_cast<std::uintptr_t>(call.b); };
  std::set<std::uintptr_t> seen;
  CHECK(verdict(calls, [&](const GemmCall& call, int number) {
          return seen.insert(page(call)).second && number > 0;
        }) != "");
  // By how often it was called, for equal arguments.
  CHECK(verdict(calls, [](const GemmCall&, int number) { return number == 1; }) != "");
  // Only where it adds to what is there; the text says which product it was.
  const std::string text = verdict(
      calls, [](const GemmCall& call, int) { return call.beta == 1.0f && call.ldc != call.n; });
  CHECK(text.find("3^T x 7 x 5, beta 1,") != std::string::npos);
}

TEST_CASE("threads that flush denormals are found", "[numerics_check]") {
  for (const int threads : {1, 2, 4}) {
    Context context(threads, {});
    CHECK_NOTHROW(check_denormals(context));
#ifdef __SSE__
    constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
    for (const unsigned bits :
         {flush_to_zero, denormals_are_zero, flush_to_zero | denormals_are_zero}) {
      bool was_found = false;
      {
        const FlushDenormals flush(bits);
        try {
          check_denormals(context);
        } catch (const Error& error) {
          was_found = error.code() == ExitCode::failed;
        }
      }
      INFO(threads << " threads, MXCSR bits " << bits);
      CHECK(was_found);
    }
    CHECK_NOTHROW(check_denormals(context));
#endif
  }
}

TEST_CASE("the fingerprint names what decides the bits, and repeats", "[numerics_check]") {
  const std::string text = numerics_fingerprint(Device(1));
  CHECK(text == numerics_fingerprint(Device(1)));
  // Threads are layout: ranks with different numbers of them may work together.
  CHECK(text == numerics_fingerprint(Device(2)));
  CHECK(text.find(kernels::blas_text()) != std::string::npos);
  CHECK(text.find("glibc") != std::string::npos);
  CHECK(text.find("Kokkos") != std::string::npos);
  // This program and no other build of it.
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  REQUIRE(bytes.size() > 100'000);
  CHECK(text.find(fmt::format("build {:016x}, ", hash64(bytes))) != std::string::npos);
  CHECK(text.find("-march=") != std::string::npos);
}
