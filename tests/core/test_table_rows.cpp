// Rows of a table and their gradient: against the order written down a second time, on floats for
// which any other order gives other bits (EXACT 3.9, 3.10, 7.7).
#include <catch2/catch.hpp>

#include <cmath>
#include <random>

#include "core/kernels/table_rows.hpp"
#include "tests/core/kernel_sweep.hpp"

using namespace weft;
using namespace weft::testing;

namespace {

using Ids = std::vector<std::int32_t>;

// Of `num_rows` rows a third have the id 3, as frequent words are; some ids have none.
Ids random_ids(std::size_t num_rows, std::int32_t vocabulary, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  Ids ids;
  for (std::size_t i = 0; i < num_rows; ++i) {
    const auto drawn =
        static_cast<std::int32_t>((generator() >> 33) % static_cast<std::uint64_t>(vocabulary));
    ids.push_back(i % 3 == 1 ? 3 % vocabulary : drawn);
  }
  return ids;
}

// Row by row of x, each into the sum of its id, which begins with the first.
Floats expected_sums(const Floats& x, const Ids& ids, Range held, std::size_t n) {
  Floats sums(static_cast<std::size_t>(held.size()) * n, 0.0f);
  std::vector<bool> has_any(static_cast<std::size_t>(held.size()), false);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    if (!held.contains(ids[row])) continue;
    const auto place = static_cast<std::size_t>(ids[row] - held.begin);
    for (std::size_t j = 0; j < n; ++j) {
      float& sum = sums[place * n + j];
      sum = has_any[place] ? sum + x[row * n + j] : x[row * n + j];
    }
    has_any[place] = true;
  }
  return sums;
}

}  // namespace

TEST_CASE("rows of a table are taken by those who hold them; -0 becomes +0", "[kernels]") {
  constexpr std::size_t n = 37;
  constexpr index_t vocabulary = 11;
  const Floats table = hostile_floats(vocabulary * n, 1);
  const Ids ids = random_ids(50, vocabulary, 2);
  Floats whole(ids.size() * n, NAN);
  Context alone(1, {});
  kernels::take_table_rows(alone, table.data(), {0, vocabulary}, ids.data(), 50, n, whole.data());
  bool has_minus_zero = false;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const float entry = table[static_cast<std::size_t>(ids[i / n]) * n + i % n];
    has_minus_zero |= entry == 0.0f && std::signbit(entry);
    REQUIRE(bit_difference<float>({whole[i]}, {entry == 0.0f ? 0.0f : entry}) == "");
  }
  CHECK(has_minus_zero);
  // In pieces, of which each leaves the others' rows alone.
  for (const int threads : {1, 2, 3, 4}) {
    Context context(threads, {});
    for (const index_t pieces : {1, 2, 3, 11}) {
      Floats together(whole.size(), NAN);
      for (index_t piece = 0; piece < pieces; ++piece) {
        const Range held = part_of(piece, pieces, vocabulary);
        kernels::take_table_rows(context, table.data() + held.begin * static_cast<index_t>(n), held,
                                 ids.data(), 50, n, together.data());
      }
      REQUIRE(bit_difference(together, whole) == "");
    }
  }
}

TEST_CASE("rows are sorted by id and keep their order", "[kernels]") {
  Context context(1, {});
  const Ids ids{5, 2, 5, 9, 2, 5, -1, 4};
  const kernels::RowsById by_id = kernels::rows_by_id(context, ids, {2, 6});
  const auto begins = by_id.begins.data<std::int32_t>();
  const auto rows = by_id.rows.data<std::int32_t>();
  CHECK(Ids(begins, begins + 5) == Ids{0, 2, 2, 3, 6});
  CHECK(Ids(rows, rows + 6) == Ids{1, 4, 7, 0, 2, 5});
}

TEST_CASE("the gradient of a table is summed in sequence per id", "[kernels]") {
  int other_orders_differ = 0;
  for (const std::size_t n : {std::size_t{1}, std::size_t{64}, std::size_t{70}}) {
    for (const index_t vocabulary : {1, 5, 23}) {
      for (const std::size_t num_rows : {std::size_t{0}, std::size_t{1}, std::size_t{90}}) {
        const Ids ids = random_ids(num_rows, static_cast<std::int32_t>(vocabulary), n + num_rows);
        const Ids more_ids = random_ids(num_rows, static_cast<std::int32_t>(vocabulary), n + 1);
        const Floats x = hostile_floats(num_rows * n, 3), more = hostile_floats(num_rows * n, 4);
        const Floats first = expected_sums(x, ids, {0, vocabulary}, n);
        for (const int threads : {1, 2, 3, 4}) {
          Context context(threads, {});
          const auto by_id = kernels::rows_by_id(context, ids, {0, vocabulary});
          const auto more_by_id = kernels::rows_by_id(context, more_ids, {0, vocabulary});
          for (const index_t pieces : {1, 2, 3, 23}) {
            Floats got(first.size(), NAN);
            const auto sum_pieces = [&](const Floats& from, const kernels::RowsById& rows,
                                        bool accumulate) {
              for (index_t piece = 0; piece < pieces; ++piece) {
                const Range held = part_of(piece, pieces, vocabulary);
                kernels::sum_rows_by_id(context, from.data(), rows, held, static_cast<index_t>(n),
                                        got.data() + held.begin * static_cast<index_t>(n),
                                        accumulate);
              }
            };
            sum_pieces(x, by_id, false);
            INFO(num_rows << " rows of " << n << ", vocabulary " << vocabulary << ", " << pieces
                          << " pieces, " << threads << " threads");
            REQUIRE(bit_difference(got, first) == "");
            // The next microbatch goes on, row by row.
            sum_pieces(more, more_by_id, true);
            Floats both = first;
            for (std::size_t row = 0; row < num_rows; ++row) {
              for (std::size_t j = 0; j < n; ++j) {
                both[static_cast<std::size_t>(more_ids[row]) * n + j] += more[row * n + j];
              }
            }
            REQUIRE(bit_difference(got, both) == "");
          }
        }
        Floats backwards(first.size(), 0.0f);
        for (std::size_t row = num_rows; row-- > 0;) {
          for (std::size_t j = 0; j < n; ++j) {
            backwards[static_cast<std::size_t>(ids[row]) * n + j] += x[row * n + j];
          }
        }
        other_orders_differ += bit_difference(backwards, first) != "" ? 1 : 0;
      }
    }
  }
  CHECK(other_orders_differ > 5);
}

TEST_CASE("a sum of -0 stays -0 where it begins, and rows of an id far apart are one chain",
          "[kernels]") {
  Context context(1, {});
  const Ids ids{1, 0, 1, 0, 1};
  const Floats x{-0.0f, 1e8f, -0.0f, -1e8f, -0.0f};
  Floats got(3, NAN);
  const auto by_id = kernels::rows_by_id(context, ids, {0, 3});
  kernels::sum_rows_by_id(context, x.data(), by_id, {0, 3}, 1, got.data(), false);
  CHECK(bit_difference(got, Floats{0.0f, -0.0f, 0.0f}) == "");
}

TEST_CASE("whole range = one by one: rows of a table and sums by id", "[kernels]") {
  constexpr std::size_t n = sweep_items, rows = 40;
  const Floats x = hostile_floats(rows * n, 9);
  const Ids ids = random_ids(rows, 5, 10);
  const auto columns = [](const Floats& from, std::size_t num_rows, index_t begin, index_t count) {
    Floats out;
    for (std::size_t row = 0; row < num_rows; ++row) {
      for (index_t j = 0; j < count; ++j)
        out.push_back(from[row * n + static_cast<std::size_t>(begin + j)]);
    }
    return out;
  };
  // Item: a column; its five sums one after the other.
  check_sweep("sum_rows_by_id", 5, [&](Context& context, index_t begin, index_t count) {
    const Floats in = columns(x, rows, begin, count);
    Floats sums(static_cast<std::size_t>(5 * count), NAN), out;
    kernels::sum_rows_by_id(context, in.data(), kernels::rows_by_id(context, ids, {0, 5}), {0, 5},
                            count, sums.data(), false);
    for (index_t j = 0; j < count; ++j) {
      for (index_t id = 0; id < 5; ++id)
        out.push_back(sums[static_cast<std::size_t>(id * count + j)]);
    }
    return out;
  });
  // Item: a row.
  const Ids many = random_ids(sweep_items, 40, 11);
  check_sweep("take_table_rows", 7, [&](Context& context, index_t begin, index_t count) {
    Floats out(static_cast<std::size_t>(7 * count), NAN);
    kernels::take_table_rows(context, x.data(), {0, 40}, many.data() + begin, count, 7, out.data());
    return out;
  });
}
