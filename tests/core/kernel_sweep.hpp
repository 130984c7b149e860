// EXACT 7.3 as one function: a kernel over a range gives the bits of the kernel over its elements
// one by one, wherever the range begins, however long it is and however many threads share it.
#pragma once

#include <catch2/catch.hpp>
#include <functional>
#include <string>

#include "core/context.hpp"
#include "tests/core/float_data.hpp"

namespace weft::testing {

constexpr index_t sweep_offsets = 17;  // 0..16: every place in a vector register
constexpr index_t sweep_lengths = 70;  // 1..70: bodies and tails of several vectors
constexpr index_t sweep_items = sweep_offsets - 1 + sweep_lengths;
constexpr int sweep_repeats = 20;

// Items [begin, begin + n) of a kernel whose inputs are fixed, their results one after the other:
// n * width floats. Elements, rows or columns, as the kernel has them.
using RunItems = std::function<Floats(Context&, index_t begin, index_t n)>;

inline void check_sweep(const std::string& name, std::size_t width, const RunItems& run) {
  INFO(name);
  Context alone(1, {});
  Floats expected;
  for (index_t i = 0; i < sweep_items; ++i) {
    const Floats one = run(alone, i, 1);
    REQUIRE(one.size() == width);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  const auto check = [&](Context& context, index_t begin, index_t n) {
    const Floats got = run(context, begin, n);
    if (got.size() != static_cast<std::size_t>(n) * width) FAIL("wrong size");
    const std::string difference = bit_difference(
        got.data(), expected.data() + static_cast<std::size_t>(begin) * width, got.size());
    if (!difference.empty()) {
      FAIL(name << ", items [" << begin << ", " << begin + n << "), "
                << context.device.num_threads() << " threads: " << difference);
    }
  };
  for (index_t begin = 0; begin < sweep_offsets; ++begin) {
    for (index_t n = 1; n <= sweep_lengths; ++n) check(alone, begin, n);
  }
  // Threads cut at other places for each length; repeats would show a race.
  for (const int threads : {2, 3, 4}) {
    Context context(threads, {});
    for (const index_t begin : {index_t{0}, index_t{5}}) {
      for (const index_t n : {1, 2, 3, 5, 16, 17, 33, 64, 70}) check(context, begin, n);
    }
    for (int repeat = 0; repeat < sweep_repeats; ++repeat) check(context, 1, sweep_lengths);
  }
}

}  // namespace weft::testing
