// Element-wise kernels: values, and whole range = one by one (EXACT 7.3).
#include <catch2/catch.hpp>

#include <cmath>

#include "core/kernels/elementwise.hpp"
#include "core/kernels/math.hpp"
#include "core/kernels/transpose.hpp"
#include "tests/core/dropout_mask.hpp"
#include "tests/core/kernel_sweep.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

// Items of any kernel of these tests: a matrix of sweep_items rows, or as many elements.
constexpr index_t row_length = 7;
constexpr std::size_t num_values = sweep_items * row_length;

Floats mixed_floats(std::size_t n, std::uint64_t seed) {
  Floats values = random_floats(n, seed, -6.0f, 6.0f);
  const Floats hostile = hostile_floats(n, seed + 1);
  for (std::size_t i = 0; i < n; i += 3) values[i] = hostile[i];
  return values;
}

}  // namespace

TEST_CASE("whole range = one by one: element-wise kernels", "[kernels]") {
  const Floats a = mixed_floats(num_values, 1);
  const Floats b = mixed_floats(num_values, 2);
  using Two = void (*)(Context&, const float*, const float*, float*, index_t);
  using One = void (*)(Context&, const float*, float*, index_t);
  const auto one = [&](One kernel) {
    return [&, kernel](Context& context, index_t begin, index_t n) {
      Floats out(static_cast<std::size_t>(n));
      kernel(context, a.data() + begin, out.data(), n);
      return out;
    };
  };
  const auto two = [&](Two kernel) {
    return [&, kernel](Context& context, index_t begin, index_t n) {
      Floats out(static_cast<std::size_t>(n));
      kernel(context, a.data() + begin, b.data() + begin, out.data(), n);
      return out;
    };
  };
  check_sweep("copy", 1, one(kernels::copy));
  check_sweep("add", 1, two(kernels::add));
  check_sweep("multiply", 1, two(kernels::multiply));
  check_sweep("dropout", 1, [&](Context& context, index_t begin, index_t n) {
    Floats out(static_cast<std::size_t>(n));
    kernels::dropout(context, a.data() + begin, out.data(), n, 0.3f,
                     {.seed = 9, .step = 4, .layer = 2, .first_element = 1001 + begin});
    return out;
  });
}

TEST_CASE("whole range = one by one: rows", "[kernels]") {
  const Floats a = mixed_floats(num_values, 3);
  const Floats bias = mixed_floats(row_length, 4);
  check_sweep("add_bias", row_length, [&](Context& context, index_t begin, index_t n) {
    Floats out(static_cast<std::size_t>(n * row_length));
    kernels::add_bias(context, a.data() + begin * row_length, bias.data(), out.data(), n,
                      row_length);
    return out;
  });
  check_sweep("take_columns", 3, [&](Context& context, index_t begin, index_t n) {
    Floats out(static_cast<std::size_t>(n * 3));
    kernels::take_columns(context, a.data() + begin * row_length, row_length, 2, out.data(), n, 3);
    return out;
  });
  // Along the row as well: columns one by one.
  check_sweep("add_bias, columns", 1, [&](Context& context, index_t begin, index_t n) {
    Floats out(static_cast<std::size_t>(n));
    kernels::add_bias(context, a.data() + begin, a.data() + 100 + begin, out.data(), 1, n);
    return out;
  });
}

TEST_CASE("values of the element-wise kernels", "[kernels]") {
  Context context(1, {});
  const Floats x{1.0f, -2.0f, 0.5f, -0.0f, 8.0f, 3.0f};
  const Floats y{4.0f, 2.0f, -0.5f, -0.0f, 0.25f, -3.0f};
  Floats out(6, 99.0f);
  kernels::copy(context, x.data(), out.data(), 6);
  CHECK(bit_difference(out, x) == "");
  kernels::add(context, x.data(), y.data(), out.data(), 6);
  CHECK(bit_difference(out, {5.0f, 0.0f, 0.0f, -0.0f, 8.25f, 0.0f}) == "");
  kernels::multiply(context, x.data(), y.data(), out.data(), 6);
  for (std::size_t i = 0; i < 6; ++i) CHECK(out[i] == x[i] * y[i]);
  Floats slope(6);
  kernels::add_bias_gelu(context, x.data(), y.data(), out.data(), slope.data(), 2, 3);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(out[i] == math::gelu(x[i] + y[i % 3]).value);
    CHECK(slope[i] == math::gelu(x[i] + y[i % 3]).slope);
  }
  kernels::add_bias(context, x.data(), y.data(), out.data(), 2, 3);
  CHECK(bit_difference(out, {5.0f, 0.0f, 0.0f, 4.0f, 10.0f, 2.5f}) == "");
  kernels::take_columns(context, x.data(), 3, 1, out.data(), 2, 2);
  CHECK(bit_difference({out[0], out[1], out[2], out[3]}, Floats{-2.0f, 0.5f, 8.0f, 3.0f}) == "");
  // Outputs may alias inputs; an empty range writes nothing.
  Floats in_place = x;
  kernels::add(context, in_place.data(), in_place.data(), in_place.data(), 6);
  CHECK(in_place[1] == -4.0f);
  kernels::dropout(context, x.data(), nullptr, 0, 0.5f, {});
  kernels::copy(context, nullptr, nullptr, 0);
}

TEST_CASE("dropout drops what the global index says", "[kernels]") {
  Context context(1, {});
  constexpr index_t n = 4099;
  constexpr float rate = 0.3f;
  const Floats x = random_floats(n, 5, 1.0f, 2.0f);
  Floats y(n);
  // From before 2^32 * 4 elements, where the block number needs its second word, to beyond; odd.
  for (const index_t first : {index_t{0}, index_t{3}, (index_t{1} << 34) - 1001}) {
    const kernels::DropoutIndex index{
        .seed = 0x1234567890ull, .step = 70000, .layer = 3, .first_element = first};
    kernels::dropout(context, x.data(), y.data(), n, rate, index);
    int kept = 0;
    for (index_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool keep = is_kept(0x1234567890ull, 70000, 3, first + i, rate);
      kept += keep ? 1 : 0;
      const float expected = keep ? x[at] * (1.0f / (1.0f - rate)) : 0.0f;
      if (y[at] != expected) FAIL("first " << first << ", element " << i);
    }
    // Five standard deviations of a fraction.
    CHECK(std::abs(kept / static_cast<double>(n) - 0.7) < 5 * std::sqrt(0.21 / n));
  }
}

TEST_CASE("dropout of other steps, layers and seeds is another", "[kernels]") {
  Context context(1, {});
  const Floats ones(256, 1.0f);
  const auto mask = [&](std::uint64_t seed, index_t step, index_t layer) {
    Floats y(256);
    kernels::dropout(context, ones.data(), y.data(), 256, 0.5f,
                     {.seed = seed, .step = step, .layer = layer});
    return y;
  };
  const Floats base = mask(1, 0, 0);
  CHECK(bit_difference(mask(1, 0, 0), base) == "");
  CHECK(bit_difference(mask(2, 0, 0), base) != "");
  CHECK(bit_difference(mask(1, 1, 0), base) != "");
  CHECK(bit_difference(mask(1, 0, 1), base) != "");
  CHECK(bit_difference(mask(1, 1, 0), mask(1, 0, 1)) != "");
}

TEST_CASE("a transposed matrix, for all sizes around groups of eight, by any number of threads",
          "[kernels]") {
  for (const int threads : {1, 2, 3}) {
    Context context(threads, {});
    for (const index_t rows : {0, 1, 7, 8, 9, 16, 25}) {
      for (const index_t cols : {1, 5, 8, 19}) {
        const auto size = static_cast<std::size_t>(rows * cols);
        const Floats from = mixed_floats(size, 8);
        Floats to(size, NAN), expected(size);
        for (index_t i = 0; i < rows; ++i) {
          for (index_t j = 0; j < cols; ++j)
            expected[static_cast<std::size_t>(j * rows + i)] =
                from[static_cast<std::size_t>(i * cols + j)];
        }
        kernels::transpose(context, from.data(), rows, cols, to.data());
        REQUIRE(bit_difference(to, expected) == "");
        // Rows that are further apart than they are long.
        Floats wide(static_cast<std::size_t>(rows * (cols + 3)), NAN), again(size, NAN);
        for (index_t i = 0; i < rows; ++i)
          std::copy_n(from.begin() + i * cols, cols, wide.begin() + i * (cols + 3));
        kernels::transpose_on_one_thread(wide.data(), cols + 3, rows, cols, again.data());
        REQUIRE(bit_difference(again, expected) == "");
      }
    }
  }
}
